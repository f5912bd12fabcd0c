// K products and c at the largest exponent, cut to F places, added by magnitude and sign; one sticky bit for all that was
// cut off goes below the magnitude of the sum, which is rounded to nearest even.  Two stages of registers.
// BUG_… are what designers get wrong.
package joined_pkg;
  function automatic int bias(int exp_bits);
    return (1 << (exp_bits - 1)) - 1;
  endfunction
endpackage

module joined_dot import joined_pkg::*; #(
  parameter int K = 4, E = 5, M = 2,                   // a, b
  parameter int EC = 5, MC = 10,                       // c, d
  parameter int F = 13,                                // places of the sum, above the sticky bit
  localparam int BA = bias(E), BC = bias(EC), P = 2 * M,
  localparam int LOW = (2 * (1 - BA) < 1 - BC ? 2 * (1 - BA) : 1 - BC) - 1,   // the exponent of zeros
  localparam int X = 10,                               // bits of an exponent
  localparam int FW = F > P ? F : P,                   // places before they are cut
  localparam int AW = F + 2, SW = AW + $clog2(K + 1) + 1
) (
  input  logic                      clk_i, rst_ni,
  input  logic [K-1:0][E+M:0]       a_i, b_i,
  input  logic [EC+MC:0]            c_i,
  output logic [EC+MC:0]            d_o
);
  typedef struct packed { logic sign; logic signed [X-1:0] exponent; logic [FW+1:0] significand; } term_t;
  typedef struct packed { logic nan, plus, minus; } special_t;

  // ---- terms -------------------------------------------------------------------------------------------------------
  term_t [K:0] term_d, term_q;
  special_t [K:0] special;
  special_t special_d, special_q, special_q2;
  for (genvar k = 0; k < K; k++) begin : gen_product
    wire [E-1:0] xe = a_i[k][M+:E], ye = b_i[k][M+:E];
    wire [M:0] xm = {|xe, a_i[k][M-1:0]}, ym = {|ye, b_i[k][M-1:0]};
    wire zero = ~|xm | ~|ym;
    wire inf = (&xe & ~|a_i[k][M-1:0]) | (&ye & ~|b_i[k][M-1:0]);
    assign term_d[k].sign = a_i[k][E+M] ^ b_i[k][E+M];
    assign term_d[k].exponent = zero ? X'(LOW) : X'(xe) + X'(~|xe) + X'(ye) + X'(~|ye) - X'(2 * BA);
    assign term_d[k].significand = (FW+2)'(xm) * (FW+2)'(ym) << (FW - P);
    assign special[k] = {(&xe & |a_i[k][M-1:0]) | (&ye & |b_i[k][M-1:0]) | (inf & zero),
                         inf & ~term_d[k].sign, inf & term_d[k].sign};
  end
  wire [EC-1:0] ce = c_i[MC+:EC];
  wire [MC:0] cm = {|ce, c_i[MC-1:0]};
  assign term_d[K].sign = c_i[EC+MC];
  assign term_d[K].exponent = ~|cm ? X'(LOW) : X'(ce) + X'(~|ce) - X'(BC);
  assign term_d[K].significand = (FW+2)'(cm) << (FW - MC);
  assign special[K] = {&ce & |c_i[MC-1:0], &ce & ~|c_i[MC-1:0] & ~c_i[EC+MC], &ce & ~|c_i[MC-1:0] & c_i[EC+MC]};
  always_comb begin
    special_d = '0;
    for (int k = 0; k <= K; k++) special_d |= special[k];
    special_d.nan |= special_d.plus & special_d.minus;
  end

  // ---- aligned, added ------------------------------------------------------------------------------------------------
  logic signed [X-1:0] top, top_q;
  logic [K:0] lost;
  logic signed [SW-1:0] total, total_q;
  logic lost_q;
  always_comb begin
    top = term_q[0].exponent;
    for (int k = 1; k <= K; k++) if (term_q[k].exponent > top) top = term_q[k].exponent;
  end
  logic [K:0][AW-1:0] aligned;
  for (genvar k = 0; k <= K; k++) begin : gen_align
    wire [X-1:0] away = top - term_q[k].exponent + X'(FW - F);
    assign aligned[k] = AW'(term_q[k].significand >> away);
`ifdef BUG_ZERO
    wire [FW+1:0] hidden = {1'b0, term_q[k].exponent == X'(LOW), FW'(0)};   // a zero gets a hidden bit before the shift
    assign lost[k] = |((term_q[k].significand | hidden) & ~({(FW+2){1'b1}} << away));
`else
    assign lost[k] = |(term_q[k].significand & ~({(FW+2){1'b1}} << away));
`endif
  end
  always_comb begin
    total = '0;
    for (int k = 0; k <= K; k++)
      total = total + (term_q[k].sign ? -SW'(aligned[k]) : SW'(aligned[k]));
  end

  // ---- joined, normalised, rounded -----------------------------------------------------------------------------------
`ifdef BUG_ADDEND
  wire join_d = |lost[K-1:0];                          // what c lost is forgotten
`else
  wire join_d = |lost;
`endif
  localparam int MW = SW, RW = MW + MC + 2;
  wire negative = total_q[SW-1];
`ifdef BUG_SIDE
  wire [SW:0] joined = {total_q, lost_q};              // joined to the number, not to its magnitude
  wire [MW-1:0] size = MW'(negative ? -joined : joined);
`else
  wire [SW-1:0] magnitude = negative ? -total_q : total_q;
  wire [MW-1:0] size = {magnitude[SW-2:0], lost_q};
`endif
  logic [$clog2(MW)-1:0] leading;
  always_comb begin
    leading = '0;
    for (int i = 0; i < MW; i++) if (size[i]) leading = $bits(leading)'(i);
  end
  wire signed [X-1:0] place = top_q - X'(F + 1) + X'(leading);
  wire signed [X-1:0] e = place < X'(1 - BC) ? X'(1 - BC) : place;
  wire [X-1:0] drop = e - top_q + X'(F + 2);           // of the sum with MC + 2 zeros below
  wire [RW-1:0] wide = {size, (MC+2)'(0)};
  wire [MC+1:0] kept = (MC+2)'(wide >> drop);          // the last one is the half
  wire rest = |(wide & ~({RW{1'b1}} << drop));
`ifdef BUG_TIE
  wire up = kept[0];                                   // ties away
`else
  wire up = kept[0] & (rest | kept[1]);
`endif
  wire [X+MC:0] code = ((X+MC+1)'(unsigned'(X'(e + X'(BC - 1)))) << MC) + (X+MC+1)'(kept[MC+1:1]) + (X+MC+1)'(up);
  localparam logic [EC+MC-1:0] INF = {{EC{1'b1}}, {MC{1'b0}}};
  always_ff @(posedge clk_i or negedge rst_ni)
    if (!rst_ni) begin
      term_q <= '0;
      {special_q, special_q2, top_q, total_q, lost_q} <= '0;
    end else begin
      term_q <= term_d;
      special_q <= special_d;
      special_q2 <= special_q;
      {top_q, total_q, lost_q} <= {top, total, join_d};
    end
  assign d_o = special_q2.nan ? {1'b0, {(EC+MC){1'b1}}} : special_q2.plus ? {1'b0, INF} : special_q2.minus ? {1'b1, INF}
             : size == 0 || code == 0 ? '0 : code >= (X+MC+1)'(INF) ? {negative, INF} : {negative, code[EC+MC-1:0]};
endmodule
