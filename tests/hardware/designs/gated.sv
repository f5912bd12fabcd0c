// A register behind a clock gate, as cell libraries model it.
module clock_gate (input logic clk_i, en_i, test_en_i, output logic clk_o);
  logic en_q;
  always_latch if (!clk_i) en_q = en_i | test_en_i;
`ifdef BUG_LATCH
  assign clk_o = clk_i & en_i;                          // the enable is not held while the clock is high
`else
  assign clk_o = clk_i & en_q;
`endif
endmodule
module gated (
  input  logic clk_i, rst_ni, en_i, scan_en_i,
  input  logic [15:0] a_i, b_i, input logic [15:0] c_i, output logic [15:0] d_o
);
  logic gclk;
  logic [15:0] a_q, b_q, c_q, d;
`ifdef BUG_CLOCK
  clock_gate i_gate (.clk_i(1'b0), .en_i, .test_en_i(scan_en_i), .clk_o(gclk));
`else
  clock_gate i_gate (.clk_i, .en_i, .test_en_i(scan_en_i), .clk_o(gclk));
`endif
  always_ff @(posedge gclk or negedge rst_ni)
    if (!rst_ni) {a_q, b_q, c_q} <= '0;
    else {a_q, b_q, c_q} <= {a_i, b_i, c_i};
  dot2 i_dot (.a(a_q), .b(b_q), .c(c_q), .d);
  always_ff @(posedge clk_i) d_o <= d;
endmodule
