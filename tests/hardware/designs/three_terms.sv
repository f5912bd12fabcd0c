// Two products and c, sorted: the two largest are added first, then the smallest, each sum with a sticky last bit; that
// is rounded once, to nearest even.  BUG_… are what designers get wrong.
module pick #(parameter int X = 10, P = 10) (input logic take, input logic [X+P+1:0] u, v, output logic [X+P+1:0] w);
  assign w[X+P+1]   = take ? u[X+P+1] : v[X+P+1];        // sign
  assign w[X+P:P+1] = take ? u[X+P:P+1] : v[X+P:P+1];    // exponent
  assign w[P:0]     = take ? u[P:0] : v[P:0];            // significand
endmodule

module three_terms #(
  parameter int E = 5, M = 2,                        // a, b
  parameter int EC = 5, MC = 10,                     // c, d
  parameter int F = 13, G = F + 2,                   // places of the two sums
  localparam int P  = 2 * M + 1 > MC ? 2 * M + 1 : MC,
  localparam int BA = (1 << (E - 1)) - 1, BC = (1 << (EC - 1)) - 1,
  localparam int LOW = (2 * (1 - BA - M) < 1 - BC - MC ? 2 * (1 - BA - M) : 1 - BC - MC) - 1,
  localparam int X  = 10                             // bits of an exponent
) (
  input  logic [1:0][E+M:0] a, b,
  input  logic [EC+MC:0]    c,
  output logic [EC+MC:0]    d
);
  typedef struct packed { logic sign; logic signed [X-1:0] exponent; logic [P:0] significand; } term_t;
  typedef struct packed { logic nan, plus, minus; } special_t;

  // The number significand · 2^(exponent − P) with its leading one on top.
  function automatic term_t normal(logic sign, logic signed [X-1:0] exponent, logic [P:0] significand);
    logic [P:0] s = significand;
    logic signed [X-1:0] e = exponent;
    for (int i = $clog2(P + 1) - 1; i >= 0; i--)
      if ((s >> (P + 1 - (1 << i))) == 0) begin
        s = s << (1 << i);
        e = e - X'(1 << i);
      end
    return significand == 0 ? {sign, X'(LOW), s} : {sign, e, s};
  endfunction

  // ---- terms ---------------------------------------------------------------------------------------------------
  term_t [2:0] t;
  special_t [2:0] sp;
  for (genvar k = 0; k < 2; k++) begin : gen_product
    wire [E-1:0] xe = a[k][M+:E], ye = b[k][M+:E];
    wire [M:0] xm = {|xe, a[k][M-1:0]}, ym = {|ye, b[k][M-1:0]};
    wire [2*M+1:0] product = (2*M+2)'(xm) * (2*M+2)'(ym);
    wire sign = a[k][E+M] ^ b[k][E+M];
    wire signed [X-1:0] exponent = X'(xe) + X'(~|xe) + X'(ye) + X'(~|ye) - X'(2 * BA);
    wire inf = (&xe & ~|a[k][M-1:0]) | (&ye & ~|b[k][M-1:0]);
    wire nan = (&xe & |a[k][M-1:0]) | (&ye & |b[k][M-1:0]) | (inf & (~|xm | ~|ym));
    assign t[k] = normal(sign, exponent + 1, (P+1)'(product) << (P - 2 * M - 1));
    assign sp[k] = {nan, inf & ~sign, inf & sign};
  end
  wire [EC-1:0] ce = c[MC+:EC];
  assign t[2] = normal(c[EC+MC], X'(ce) + X'(~|ce) - X'(BC), (P+1)'({|ce, c[MC-1:0]}) << (P - MC));
  assign sp[2] = {&ce & |c[MC-1:0], &ce & ~|c[MC-1:0] & ~c[EC+MC], &ce & ~|c[MC-1:0] & c[EC+MC]};

  // ---- sorted by exponent --------------------------------------------------------------------------------------
  wire first_swap = t[0].exponent < t[1].exponent;
  term_t x0, y0, y1, z, x, y;
  pick #(.X(X), .P(P)) px0 (first_swap, t[1], t[0], x0), py0 (first_swap, t[0], t[1], y0);
`ifdef BUG_SORT
  assign {x, y, z} = {x0, y0, t[2]};                   // c is never moved
`else
  wire second_swap = y0.exponent < t[2].exponent, last_swap = x0.exponent < y1.exponent;
  pick #(.X(X), .P(P)) py1 (second_swap, t[2], y0, y1), pz (second_swap, y0, t[2], z);
  pick #(.X(X), .P(P)) px (last_swap, y1, x0, x), py (last_swap, x0, y1, y);
`endif

  // ---- the two largest -----------------------------------------------------------------------------------------
  wire [X-1:0] near = x.exponent - y.exponent;
  wire [F:0] xf = (F+1)'(x.significand) << (F - P), yf = (F+1)'(y.significand) << (F - P);
  wire [F:0] ys = near > F ? '0 : yf >> near;
`ifdef BUG_STICKY
  wire lost1 = 1'b0;
`else
  wire lost1 = near > F ? |yf : |(yf & ~({(F+1){1'b1}} << near));
`endif
  wire signed [F+2:0] first = (x.sign ? -(F+3)'(xf) : (F+3)'(xf)) + (y.sign ? -(F+3)'(ys | (F+1)'(lost1)) : (F+3)'(ys | (F+1)'(lost1)));
  wire sign1 = first[F+2];
  wire [F+1:0] mag1 = (F+2)'(sign1 ? -first : first);
  logic [F+1:0] norm1;
  logic signed [X-1:0] e1;
  always_comb begin
    norm1 = mag1;
    e1 = x.exponent + 1;
    for (int i = $clog2(F + 2) - 1; i >= 0; i--)
      if ((norm1 >> (F + 2 - (1 << i))) == 0) begin
        norm1 = norm1 << (1 << i);
        e1 = e1 - X'(1 << i);
      end
    if (mag1 == 0) e1 = X'(LOW);
  end

  // ---- and the smallest ----------------------------------------------------------------------------------------
  wire swap = e1 < z.exponent;
  wire signed [X-1:0] top = swap ? z.exponent : e1;
  wire [G:0] uf = (G+1)'(norm1) << (G - F - 1), vf = (G+1)'(z.significand) << (G - P);
  wire [X-1:0] nu = top - e1, nv = top - z.exponent;
  wire [G:0] ug = (nu > G ? '0 : uf >> nu) | (G+1)'(nu > G ? |uf : |(uf & ~({(G+1){1'b1}} << nu)));
`ifdef BUG_SMALLEST
  wire [G:0] vg = nv > G ? '0 : vf >> nv;               // what is shifted out of the smallest is forgotten
`else
  wire [G:0] vg = (nv > G ? '0 : vf >> nv) | (G+1)'(nv > G ? |vf : |(vf & ~({(G+1){1'b1}} << nv)));
`endif
  wire signed [G+2:0] total = (sign1 ? -(G+3)'(ug) : (G+3)'(ug)) + (z.sign ? -(G+3)'(vg) : (G+3)'(vg));

  // ---- normalised, rounded ----------------------------------------------------------------------------------------
  wire negative = total[G+2];
  wire [G+2:0] mag = negative ? -total : total;
  wire low = top < X'(1 - BC);                         // below the least exponent of d
  wire [X-1:0] down = low ? X'(1 - BC) - top : '0;
  wire lost = down > G + 2 ? |mag : |(mag & ~({(G+3){1'b1}} << down));
  wire [G+2:0] jammed = (down > G + 2 ? '0 : mag >> down) | (G+3)'(lost);
  logic [G+1:0] shifted;
  logic [X-1:0] field;                                 // how far its highest place is above the least normal one
  always_comb begin
    shifted = jammed[G+1:0];
    field = low ? X'(1) : X'(top) + X'(BC);
    for (int i = $clog2(G + 2) - 1; i >= 0; i--)
      if ((shifted >> (G + 2 - (1 << i))) == 0 && field >= X'(1 << i)) begin
        shifted = shifted << (1 << i);
        field = field - X'(1 << i);
      end
  end
  localparam int R = G + 1 - MC;                       // bits below the last one of d
  wire up = shifted[R-1] & (|shifted[R-2:0] | shifted[R]);
  wire [X+MC:0] code = ((X+MC+1)'(field) << MC) + (X+MC+1)'(shifted[G+1:R]) + (X+MC+1)'(up);
  localparam logic [EC+MC-1:0] INF = {{EC{1'b1}}, {MC{1'b0}}};
  wire plus = sp[0].plus | sp[1].plus | sp[2].plus, minus = sp[0].minus | sp[1].minus | sp[2].minus;
  wire nan = sp[0].nan | sp[1].nan | sp[2].nan | (plus & minus);
`ifdef BUG_ZERO_SIGN
  wire zero_sign = negative;
`else
  wire zero_sign = t[0].sign & t[1].sign & t[2].sign;
`endif
  assign d = nan ? {1'b0, {(EC+1){1'b1}}, {(MC-1){1'b0}}} : plus ? {1'b0, INF} : minus ? {1'b1, INF}
           : mag == 0 ? {zero_sign, {(EC+MC){1'b0}}}
           : code >= (X+MC+1)'(INF) ? {negative, INF} : {negative, code[EC+MC-1:0]};
endmodule
