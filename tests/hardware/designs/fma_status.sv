// A fused multiply-add to nearest even, with the exceptions that it raises, in RISC-V's order: NV, DZ, OF, UF, NX.
// A result is tiny after rounding.  Normal: subnormal factors are shifted first, until their leading one is on top.
// BUG_… are what designers get wrong.
module fma_status #(
  parameter int E = 5, M = 2,
  parameter bit Normal = 0,
  localparam int F = 2 * M + 3,                        // places of the sum, the last one sticky
  localparam int B = (1 << (E - 1)) - 1, X = E + 4
) (
  input  logic [E+M:0] a_i, b_i, c_i,
  output logic [E+M:0] result_o,
  output logic [4:0]   status_o
);
  wire [E-1:0] xe = a_i[M+:E], ye = b_i[M+:E], ze = c_i[M+:E];
  wire [M:0] xm = {|xe, a_i[M-1:0]}, ym = {|ye, b_i[M-1:0]}, zm = {|ze, c_i[M-1:0]};
  wire x_inf = &xe & ~|a_i[M-1:0], y_inf = &ye & ~|b_i[M-1:0], z_inf = &ze & ~|c_i[M-1:0];
  wire x_nan = &xe & |a_i[M-1:0], y_nan = &ye & |b_i[M-1:0], z_nan = &ze & |c_i[M-1:0];
  wire sign = a_i[E+M] ^ b_i[E+M], z_sign = c_i[E+M];

  // ---- factors with their leading one on top ------------------------------------------------------------------
`ifdef BUG_PLACES
  localparam int Z = $clog2(M + 1) - 1;                // of a number of places, a bit too few
`else
  localparam int Z = $clog2(M + 1);
`endif
  logic [M:0] xn, yn;
  logic [Z-1:0] xz, yz;
  always_comb begin
    {xn, yn, xz, yz} = {xm, ym, {(2*Z){1'b0}}};
    if (Normal) for (int i = 0; i < M; i++) begin
      if (~xn[M]) {xn, xz} = {xn << 1, xz + Z'(1)};
      if (~yn[M]) {yn, yz} = {yn << 1, yz + Z'(1)};
    end
  end

  // ---- product and addend at the larger exponent --------------------------------------------------------------
  localparam signed [X-1:0] ZERO = X'(2 * (1 - B));
  wire [2*M+1:0] product = (2*M+2)'(xn) * (2*M+2)'(yn);
`ifdef BUG_LOWERED
  wire signed [X-1:0] lowered = X'(xz);                // by the places of one factor alone
`else
  wire signed [X-1:0] lowered = X'(xz) + X'(yz);
`endif
  wire signed [X-1:0] pe = ~|xm | ~|ym ? ZERO : X'(xe) + X'(~|xe) + X'(ye) + X'(~|ye) - X'(2 * B) - lowered;
  wire signed [X-1:0] ce = ~|zm ? ZERO : X'(ze) + X'(~|ze) - X'(B);
  wire signed [X-1:0] top = pe > ce ? pe : ce;
  wire [F+1:0] pf = (F+2)'(product) << (F - 2 * M);
  wire [F:0]   cf = (F+1)'(zm) << (F - M);
  wire [X-1:0] pn = top - pe, cn = top - ce;
  wire [F+1:0] ps = (pn > F + 1 ? '0 : pf >> pn) | (F+2)'(pn > F + 1 ? |pf : |(pf & ~({(F+2){1'b1}} << pn)));
  wire [F:0]   cs = (cn > F ? '0 : cf >> cn) | (F+1)'(cn > F ? |cf : |(cf & ~({(F+1){1'b1}} << cn)));
  wire [F+3:0] total = (sign ? -(F+4)'(ps) : (F+4)'(ps)) + (z_sign ? -(F+4)'(cs) : (F+4)'(cs));

  // ---- normalised, rounded --------------------------------------------------------------------------------------
  wire negative = total[F+3];
  wire [F+3:0] mag = negative ? -total : total;
  wire low = top < X'(1 - B);
  wire [X-1:0] down = low ? X'(1 - B) - top : '0;
  wire [F+3:0] jammed = (down > F + 3 ? '0 : mag >> down) | (F+4)'(down > F + 3 ? |mag : |(mag & ~({(F+4){1'b1}} << down)));
  logic [F+2:0] shifted;
  logic [X-1:0] field;                                 // how far its highest place is above the least normal one
  always_comb begin
    shifted = jammed[F+2:0];
    field = low ? X'(2) : X'(top) + X'(B + 1);
    for (int i = $clog2(F + 3) - 1; i >= 0; i--)
      if ((shifted >> (F + 3 - (1 << i))) == 0 && field >= X'(1 << i)) begin
        shifted = shifted << (1 << i);
        field = field - X'(1 << i);
      end
  end
  localparam int R = F + 2 - M;                        // bits below the last one of d
  wire up = shifted[R-1] & (|shifted[R-2:0] | shifted[R]);
  wire [X+M:0] code = ((X+M+1)'(field) << M) + (X+M+1)'(shifted[F+2:R]) + (X+M+1)'(up);
  localparam logic [E+M-1:0] INF = {{E{1'b1}}, {M{1'b0}}};
  wire infinite = x_inf | y_inf, undefined = (x_inf & ~|ym) | (~|xm & y_inf);
  wire opposite = infinite & z_inf & (sign != z_sign);
  wire nan = x_nan | y_nan | z_nan | undefined | opposite;
  assign result_o = nan ? {1'b0, {(E+1){1'b1}}, {(M-1){1'b0}}} : infinite ? {sign, INF} : z_inf ? c_i
                  : mag == 0 ? {sign & z_sign, {(E+M){1'b0}}}
                  : code >= (X+M+1)'(INF) ? {negative, INF} : {negative, code[E+M-1:0]};

  // ---- exceptions -------------------------------------------------------------------------------------------------
  wire signalling = (x_nan & ~a_i[M-1]) | (y_nan & ~b_i[M-1]) | (z_nan & ~c_i[M-1]);
  wire number = ~(nan | infinite | z_inf);
  wire overflow = code >= (X+M+1)'(INF);
  wire below = field == 0 & ~shifted[F+2];             // before it is rounded
  wire [F+2:0] finer = shifted << 1;
  wire carried = &finer[F+2:R] & finer[R-1];           // rounded with one place more it is the least normal number
`ifdef BUG_BEFORE
  wire tiny = below;
`else
  wire tiny = below & ~carried;
`endif
`ifdef BUG_INEXACT
  wire inexact = |shifted[R-1:0];                      // what overflows may be exact but for that
`else
  wire inexact = |shifted[R-1:0] | overflow;
`endif
`ifdef BUG_QUIET
  wire invalid = nan;                                  // quiet NaNs raise nothing
`elsif BUG_HIDDEN
  wire invalid = signalling | (undefined & ~z_nan) | (opposite & ~x_nan & ~y_nan);
`else
  wire invalid = signalling | ((undefined | opposite) & ~x_nan & ~y_nan);
`endif
  assign status_o = {invalid, 1'b0, number & overflow, number & inexact & tiny, number & inexact};
endmodule
