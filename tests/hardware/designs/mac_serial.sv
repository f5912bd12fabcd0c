// Two products of e5m2 come one after the other; the pair is kept, and added when both are there: a unit with feedback.
module mac_serial import dpa_pkg::*; (
  input  logic        clk, rst_n,
  input  logic        start, valid,
  input  logic [7:0]  x, y,
  input  logic [15:0] z,
  output logic        done,
  output logic [15:0] result
);
  typedef enum logic [1:0] {IDLE, FIRST, LAST} state_e;
  state_e state_q;
  logic [7:0] x_q [2], y_q [2];
  logic [15:0] z_q;
  always_ff @(posedge clk) begin
    if (!rst_n) begin
      state_q <= IDLE;
`ifdef BUG_RESET
`else
      z_q <= '0;
`endif
    end else if (start) begin
      state_q <= FIRST;
`ifndef BUG_RESET
      z_q <= z;
`endif
      x_q[0] <= x;
      y_q[0] <= y;
    end else if (state_q == FIRST && valid) begin
      state_q <= LAST;
      x_q[1] <= x;
      y_q[1] <= y;
    end
  end
  assign done = state_q == LAST;
  dot2 i_dot (.a({x_q[1], x_q[0]}), .b({y_q[1], y_q[0]}), .c(z_q), .d(result));
endmodule
