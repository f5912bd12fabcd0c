// The exact sum of K products and c in one long register of fixed point, rounded once, in each of RISC-V's five roundings,
// with the sign of zero that IEEE 754 gives a sum.  BUG_… are what designers get wrong.
package exact_pkg;
  typedef enum logic [2:0] {RNE, RTZ, RDN, RUP, RMM} round_e;
  function automatic int bias(int exp_bits);
    return (1 << (exp_bits - 1)) - 1;
  endfunction
  function automatic int least(int x, int y);
    return x < y ? x : y;
  endfunction
endpackage

module exact_dot import exact_pkg::*; #(
  parameter int K = 2, E = 5, M = 2,                   // a, b
  parameter int EC = 5, MC = 10,                       // c, d
  localparam int BA = bias(E), BC = bias(EC),
  localparam int PL = 2 * (1 - BA - M), CL = 1 - BC - MC,             // last places of products, of c
  localparam int LOW = least(PL, CL),
  localparam int TOP = -least(-2 * (BA + 2), -(BC + 2)),             // above every exponent, ∞'s too
  localparam int W = TOP - LOW + $clog2(K + 1) + 1     // of the sum, with its sign
) (
  input  round_e              rnd_mode_i,
  input  logic [K-1:0][E+M:0] a_i, b_i,
  input  logic [EC+MC:0]      c_i,
  output logic [EC+MC:0]      d_o
);
  typedef struct packed { logic nan, plus, minus; } special_t;

  // ---- placed in fixed point, added --------------------------------------------------------------------------------
  logic [K:0] sign;
  logic [K:0][W-1:0] placed;
  special_t [K:0] special;
  for (genvar k = 0; k < K; k++) begin : gen_product
    wire [E-1:0] xe = a_i[k][M+:E], ye = b_i[k][M+:E];
    wire [M:0] xm = {|xe, a_i[k][M-1:0]}, ym = {|ye, b_i[k][M-1:0]};
    wire [2*M+1:0] product = (2*M+2)'(xm) * (2*M+2)'(ym);
    wire [E:0] left = (E+1)'(xe) + (E+1)'(~|xe) + (E+1)'(ye) + (E+1)'(~|ye) - (E+1)'(2);
    wire inf = (&xe & ~|a_i[k][M-1:0]) | (&ye & ~|b_i[k][M-1:0]);
    assign sign[k] = a_i[k][E+M] ^ b_i[k][E+M];
    assign placed[k] = W'(product) << (PL - LOW) << left;
    assign special[k] = {(&xe & |a_i[k][M-1:0]) | (&ye & |b_i[k][M-1:0]) | (inf & ~|product), inf & ~sign[k], inf & sign[k]};
  end
  wire [EC-1:0] ce = c_i[MC+:EC];
  assign sign[K] = c_i[EC+MC];
  assign placed[K] = W'({|ce, c_i[MC-1:0]}) << (CL - LOW) << (ce - EC'(|ce));
  assign special[K] = {&ce & |c_i[MC-1:0], &ce & ~|c_i[MC-1:0] & ~sign[K], &ce & ~|c_i[MC-1:0] & sign[K]};
  logic [W-1:0] total;
  special_t any;
  always_comb begin
    total = '0;
    any = '0;
    for (int k = 0; k <= K; k++) begin
`ifdef BUG_CARRY
      total = W'(signed'((W-4)'(total + (sign[k] ? -placed[k] : placed[k]))));   // no room for the carries
`else
      total = total + (sign[k] ? -placed[k] : placed[k]);
`endif
      any |= special[k];
    end
    any.nan |= any.plus & any.minus;
  end

  // ---- normalised, rounded -----------------------------------------------------------------------------------------
  localparam int Q = BC - 1 + LOW;                     // field − 1 of a leading one in the last place
  localparam int RW = W + MC + 1;
  wire negative = total[W-1];
  wire [W-1:0] magnitude = negative ? -total : total;
  logic [9:0] leading;
  always_comb begin
    leading = '0;
    for (int i = 0; i < W; i++) if (magnitude[i]) leading = 10'(i);
  end
  wire tiny = signed'(leading) + signed'(10'(Q)) < 0;
  wire [9:0] at = tiny ? 10'(-Q) : leading;            // where the hidden bit is
  wire [9:0] field = tiny ? '0 : leading + 10'(Q);     // less one for the hidden bit
  wire [RW-1:0] wide = {magnitude, (MC+1)'(0)};
  wire [MC+1:0] kept = (MC+2)'(wide >> at);            // the last one is the half
`ifdef BUG_STICKY
  wire rest = |(wide & ~({RW{1'b1}} << at) & (({RW{1'b1}} << at) >> MC));   // of the next MC bits alone
`else
  wire rest = |(wide & ~({RW{1'b1}} << at));
`endif
  wire inexact = kept[0] | rest;
  logic up, stays;                                     // away from zero; an overflow is the largest number
  always_comb begin
    unique case (rnd_mode_i)
      RTZ:     {up, stays} = 2'b01;
`ifdef BUG_DIRECTION
      RDN:     {up, stays} = {1'b0, ~negative};        // toward zero below zero
`else
      RDN:     {up, stays} = {inexact & negative, ~negative};
`endif
      RUP:     {up, stays} = {inexact & ~negative, negative};
      RMM:     {up, stays} = {kept[0], 1'b0};
      default: {up, stays} = {kept[0] & (rest | kept[1]), 1'b0};
    endcase
  end
  wire [MC+11:0] code = ((MC+12)'(field) << MC) + (MC+12)'(kept[MC+1:1]) + (MC+12)'(up);
  localparam logic [EC+MC-1:0] INF = {{EC{1'b1}}, {MC{1'b0}}};
`ifdef BUG_OVERFLOW
  wire [EC+MC-1:0] most = INF;                         // ∞ in every rounding
`else
  wire [EC+MC-1:0] most = stays ? INF - 1 : INF;
`endif
`ifdef BUG_ZERO_SIGN
  wire zero_sign = &sign;                              // rounded down, x − x is +0
`else
  wire zero_sign = rnd_mode_i == RDN ? |sign : &sign;
`endif
  assign d_o = any.nan ? {1'b0, INF | (EC+MC)'(1 << (MC - 1))} : any.plus ? {1'b0, INF} : any.minus ? {1'b1, INF}
             : total == 0 ? {zero_sign, (EC+MC)'(0)} : {negative, code >= (MC+12)'(INF) ? most : code[EC+MC-1:0]};
endmodule
