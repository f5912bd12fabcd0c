// One stage of registers with a valid/ready handshake.
module dpa_pipe #(parameter int unsigned W = 1) (
  input  logic         clk_i, rst_ni, flush_i,
  input  logic         valid_i, output logic ready_o, input  logic [W-1:0] data_i,
  output logic         valid_o, input  logic ready_i, output logic [W-1:0] data_o
);
  logic valid_q;
  logic [W-1:0] data_q;
  assign ready_o = ready_i | ~valid_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)      valid_q <= 1'b0;
    else if (flush_i) valid_q <= 1'b0;
    else if (ready_o) valid_q <= valid_i;
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni)                 data_q <= '0;
    else if (valid_i && ready_o) data_q <= data_i;
  end
  assign valid_o = valid_q;
  assign data_o  = data_q;
endmodule
