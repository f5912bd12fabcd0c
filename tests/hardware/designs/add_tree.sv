// A tree of IEEE additions, as of a core's library parts: K products, each rounded, then pairs, pairs of pairs, and c last,
// every sum rounded to nearest even.  A register after each level; c waits for the sum.  BUG_… are what designers get wrong.
module ieee_mul #(parameter int E = 5, M = 2, EC = 5, MC = 10) (
  input logic [E+M:0] x, y, output logic [EC+MC:0] p
);
  localparam int X = 12, BA = (1 << (E - 1)) - 1, BC = (1 << (EC - 1)) - 1, P = 2 * M + 2;
  localparam int W = P + MC + 2;                       // zeros below, so that the last places are always there
  wire [E-1:0] xe = x[M+:E], ye = y[M+:E];
  wire [M:0] xm = {|xe, x[M-1:0]}, ym = {|ye, y[M-1:0]};
  wire x_inf = &xe & ~|x[M-1:0], y_inf = &ye & ~|y[M-1:0];
  wire nan = (&xe & |x[M-1:0]) | (&ye & |y[M-1:0]) | (x_inf & ~|ym) | (y_inf & ~|xm);
  wire sign = x[E+M] ^ y[E+M];
  wire [P-1:0] product = P'(xm) * P'(ym);
  logic [$clog2(P):0] zeros;
  always_comb begin
    zeros = ($clog2(P)+1)'(P);
    for (int i = 0; i < P; i++) if (product[i]) zeros = ($clog2(P)+1)'(P - 1 - i);
  end
  // the exponent field of the product with its leading one on top, before it is rounded
  wire signed [X-1:0] field = X'(xe) + X'(~|xe) + X'(ye) + X'(~|ye) + X'(1 - 2 * BA + BC) - X'(zeros);
  wire [W-1:0] normal = {product, (MC+2)'(0)} << zeros;
  wire tiny = field < 1;
  wire [X-1:0] down = tiny ? X'(1) - field : '0;
`ifdef BUG_FLUSH
  wire [W-1:0] shifted = tiny ? '0 : normal;           // subnormal products are lost
  wire lost = 1'b0;
`else
  wire [W-1:0] shifted = normal >> down;
  wire lost = |(normal & ~({W{1'b1}} << down));
`endif
  localparam int R = W - MC - 1;                       // bits below the last one
  wire up = shifted[R-1] & (|shifted[R-2:0] | lost | shifted[R]);
  wire [X+MC-1:0] code = ((X+MC)'(tiny ? X'(0) : field - X'(1)) << MC) + (X+MC)'(shifted[W-1:R]) + (X+MC)'(up);
  localparam logic [EC+MC-1:0] INF = {{EC{1'b1}}, {MC{1'b0}}};
  assign p = nan ? {1'b0, INF | (EC+MC)'(1 << (MC - 1))} : x_inf | y_inf ? {sign, INF}
           : ~|product ? {sign, (EC+MC)'(0)} : code >= (X+MC)'(INF) ? {sign, INF} : {sign, code[EC+MC-1:0]};
endmodule

module ieee_add #(parameter int E = 5, M = 10) (input logic [E+M:0] x, y, output logic [E+M:0] s);
  wire swap = x[E+M-1:0] < y[E+M-1:0];
  wire [E+M:0] more = swap ? y : x, less = swap ? x : y;
  wire [E-1:0] eb = more[M+:E] | E'(~|more[M+:E]), es = less[M+:E] | E'(~|less[M+:E]);
  wire [M+3:0] mb = {|more[M+:E], more[M-1:0], 3'b0}, ms = {|less[M+:E], less[M-1:0], 3'b0};
  wire [E-1:0] distance = eb - es;
  wire [M+3:0] aligned = ms >> distance;
`ifdef BUG_STICKY
  wire sticky = 1'b0;
`else
  wire sticky = |(ms & ~({(M+4){1'b1}} << distance));
`endif
  wire subtract = more[E+M] ^ less[E+M];
  wire [M+4:0] low = {1'b0, aligned[M+3:1], aligned[0] | sticky};
  wire [M+4:0] total = subtract ? (M+5)'(mb) - low : (M+5)'(mb) + low;
  logic [$clog2(M+5):0] zeros;
  always_comb begin
    zeros = '0;
    for (int i = 0; i < M + 5; i++) if (total[i]) zeros = ($clog2(M+5)+1)'(M + 4 - i);
  end
  wire [E:0] top = (E+1)'(eb) + 1;                     // the field, were the leading bit the carry's
  wire tiny = (E+1)'(zeros) >= top;
  wire [E:0] left = tiny ? top - 1 : (E+1)'(zeros);
  wire [M+4:0] normal = total << left;
  wire [E:0] field = tiny ? '0 : top - (E+1)'(zeros) - 1;   // less the hidden bit
  wire up = normal[3] & (|normal[2:0] | normal[4]);
  wire [E+M+1:0] code = ((E+M+2)'(field) << M) + (E+M+2)'(normal[M+4:4]) + (E+M+2)'(up);
  localparam logic [E+M-1:0] INF = {{E{1'b1}}, {M{1'b0}}};
  wire special = &more[M+:E], nan = special & (|more[M-1:0] | (&less[M+:E] & subtract));
`ifdef BUG_ZERO_SIGN
  wire zero_sign = more[E+M];                          // x − x has the sign of x
`else
  wire zero_sign = x[E+M] & y[E+M];
`endif
  assign s = nan ? {1'b0, INF | (E+M)'(1 << (M - 1))} : special ? more : ~|total ? {zero_sign, (E+M)'(0)}
           : code >= (E+M+2)'(INF) ? {more[E+M], INF} : {more[E+M], code[E+M-1:0]};
endmodule

module add_tree #(
  parameter int K = 4, E = 5, M = 2,                   // a, b; K a power of two
  parameter int EC = 5, MC = 10,                       // products, sums, c, d
  localparam int L = $clog2(K)
) (
  input  logic                clk_i,
  input  logic [K-1:0][E+M:0] a_i, b_i,
  input  logic [EC+MC:0]      c_i,
  output logic [EC+MC:0]      d_o
);
  // node 1 is the root, node K + k the product k
  logic [EC+MC:0] node_d [1:2*K-1], node_q [1:2*K-1];
  for (genvar k = 0; k < K; k++) begin : gen_product
    ieee_mul #(.E(E), .M(M), .EC(EC), .MC(MC)) i_mul (.x(a_i[k]), .y(b_i[k]), .p(node_d[K+k]));
  end
  for (genvar n = 1; n < K; n++) begin : gen_sum
`ifdef BUG_ORDER
    localparam int U = n < K / 2 ? 2 * n : K + n % (K / 2);   // the first product with the third, as halves would be added
    ieee_add #(.E(EC), .M(MC)) i_add (.x(node_q[U]), .y(node_q[n < K / 2 ? U + 1 : U + K / 2]), .s(node_d[n]));
`elsif BUG_PIPE
    ieee_add #(.E(EC), .M(MC)) i_add (.x(node_q[2*n]), .y(n == K - 1 ? node_d[2*n+1] : node_q[2*n+1]), .s(node_d[n]));
`else
    ieee_add #(.E(EC), .M(MC)) i_add (.x(node_q[2*n]), .y(node_q[2*n+1]), .s(node_d[n]));
`endif
  end
  always_ff @(posedge clk_i) for (int n = 1; n < 2 * K; n++) node_q[n] <= node_d[n];
  logic [EC+MC:0] c_q [0:L];
  always_ff @(posedge clk_i) begin
    c_q[0] <= c_i;
    for (int i = 1; i <= L; i++) c_q[i] <= c_q[i-1];
  end
  ieee_add #(.E(EC), .M(MC)) i_last (.x(node_q[1]), .y(c_q[L]), .s(d_o));
endmodule
