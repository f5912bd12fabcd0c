// A dot product of two E4M3 products and c of FP32, to odd, as RISC-V's Zvfqwbdota8f allows it: exact products, added to
// each other, then to c, by two adders of FP32 to odd.  BUG_… are what the standard does not allow.
module rv_mul (input logic [7:0] x, y, output logic [31:0] p);  // exact: 8 bits of significand
  wire nan = &x[6:0] | &y[6:0], zero = ~|x[6:0] | ~|y[6:0];
  wire [3:0] mx = {|x[6:3], x[2:0]}, my = {|y[6:3], y[2:0]};
  wire [7:0] sig = 8'(mx) * 8'(my);
  wire [5:0] field = 6'(x[6:3]) + 6'(~|x[6:3]) + 6'(y[6:3]) + 6'(~|y[6:3]);
  logic [2:0] zeros;
  logic [7:0] normal;
  always_comb begin
    zeros = 0;
    for (int i = 0; i < 8; i++) if (sig[i]) zeros = 3'(7 - i);
  end
  assign normal = sig << zeros;
  wire [7:0] exponent = 8'd114 + 8'(field) - 8'(zeros);
  assign p = nan ? 32'h7fc00000 : zero ? 32'h0 : {x[7] ^ y[7], exponent, normal[6:0], 16'h0};
endmodule

module rv_add (input logic [31:0] x, y, output logic [31:0] s);  // to odd; a zero sum is +0
  wire swap = x[30:0] < y[30:0];
  wire [31:0] more = swap ? y : x, less = swap ? x : y;
  wire [7:0] eb = more[30:23] | 8'(~|more[30:23]), es = less[30:23] | 8'(~|less[30:23]);
  wire [26:0] mb = {|more[30:23], more[22:0], 3'b0}, ms = {|less[30:23], less[22:0], 3'b0};
  wire [7:0] distance = eb - es;
  wire [26:0] aligned = distance > 26 ? 27'h0 : ms >> distance;
`ifdef BUG_STICKY
  wire sticky = 0;
`else
  wire sticky = distance > 26 ? |ms : |(ms & ~(27'h7ffffff << distance));
`endif
  wire [27:0] low = {1'b0, aligned[26:1], aligned[0] | sticky};
  wire [27:0] total = more[31] == less[31] ? 28'(mb) + low : 28'(mb) - low;
  logic [4:0] zeros;
  always_comb begin
    zeros = 28;
    for (int i = 0; i < 28; i++) if (total[i]) zeros = 5'(27 - i);
  end
  wire [8:0] top = 9'(eb) + 1;                        // the field, were the leading bit the carry's
  wire subnormal = 9'(zeros) >= top;
  wire [4:0] left = subnormal ? 5'(top - 1) : zeros;
  wire [27:0] normal = total << left;
  wire [8:0] field = subnormal ? 9'h0 : top - 9'(zeros);
`ifdef BUG_NEAREST
  wire [22:0] fraction = normal[26:4] + 23'(normal[3] & (|normal[2:0] | normal[4]));
`else
  wire [22:0] fraction = {normal[26:5], normal[4] | (|normal[3:0])};
`endif
  wire special = &more[30:23], nan = special & (|more[22:0] | (&less[30:23] & (|less[22:0] | (more[31] ^ less[31]))));
  assign s = nan ? 32'h7fc00000 : special ? more : ~|total ? 32'h0 :
             field >= 255 ? {more[31], 31'h7f800000} : {more[31], field[7:0], fraction};
endmodule

module rv_dot2 (input logic [1:0][7:0] a, b, input logic [31:0] c, output logic [31:0] d);
  logic [31:0] p0, p1, s;
  rv_mul first (.x(a[0]), .y(b[0]), .p(p0));
  rv_mul second (.x(a[1]), .y(b[1]), .p(p1));
  rv_add pair (.x(p0), .y(p1), .s(s));
  rv_add last (.x(s), .y(c), .s(d));
endmodule
