// Three modules in Verilog 2001 that a wrapper puts together; `WIDTHS is in an include file.
`include "dot2_defs.vh"
module dot2_first (clk, x, y, z, xo, yo, zo);
  input clk;
  input [`CODES-1:0] x, y;
  input [15:0] z;
  output reg [`CODES-1:0] xo, yo;
  output reg [15:0] zo;
  always @(posedge clk) begin
    xo <= x;
    yo <= y;
    zo <= z;
  end
endmodule
module dot2_last (clk, r, o);
  input clk;
  input [15:0] r;
  output reg [15:0] o;
  always @(posedge clk) o <= r;
endmodule
module dot2_top (clk, x, y, z, o);
  input clk;
  input [`CODES-1:0] x, y;
  input [15:0] z;
  output [15:0] o;
  wire [`CODES-1:0] x1, y1;
  wire [15:0] z1, r;
  dot2_first first (clk, x, y, z, x1, y1, z1);
  dot2 dot (.a(x1), .b(y1), .c(z1), .d(r));
  dot2_last last (clk, r, o);
endmodule
