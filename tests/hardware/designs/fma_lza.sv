// Fused multiply-add of IEEE formats, to nearest even, subnormals kept: one wide window in which c is aligned while
// the product is computed, a leading-zero anticipator beside the adder, and a correction of what it is off.
// Combinational.  Booth = 1: a radix-4 Booth multiplier with rows of 3:2 compressors, whose product is never added up
// apart from c; 2: one that is (booth_mul.sv).  BUG_… are what designers get wrong.
module fma_lza #(
  parameter int unsigned E = 5,
  parameter int unsigned M = 10,
  parameter int unsigned EA = E,                        // of a and b, if theirs is another format
  parameter int unsigned MA = M,
  parameter bit [1:0] Booth = 0,
  localparam int unsigned N = 1 + E + M,
  localparam int unsigned NA = 1 + EA + MA
) (
  input  logic [NA-1:0] a_i, b_i,
  input  logic [N-1:0] c_i,
  output logic [N-1:0] d_o
);
  localparam int unsigned P = M + 1;                    // of c's significand
  localparam int unsigned PA = MA + 1;                  // of a factor's
  localparam int unsigned B = P + 2;                    // places below the product, which may have zeros on top
  localparam int unsigned W = P + 2 + 2 * PA + B;       // the window: c, two zeros, the product, those places
  localparam int unsigned X = E + 3;                    // of exponents, signed
  localparam int unsigned L = $clog2(W + 1);
  localparam logic signed [X-1:0] Bias = X'((1 << EA) - (1 << (E - 1)) - 1);
  typedef struct packed { logic sign; logic [E-1:0] exponent; logic [M-1:0] fraction; } fp_t;
  typedef struct packed { logic sign; logic [EA-1:0] exponent; logic [MA-1:0] fraction; } factor_t;
  typedef struct packed { logic zero; logic inf; logic nan; logic normal; } class_t;
  function automatic class_t classify(logic low, logic high, logic fraction);
    return '{zero: low & ~fraction, inf: high & ~fraction, nan: high & fraction, normal: ~low};
  endfunction

  factor_t a, b;
  fp_t c;
  class_t ka, kb, kc;
  assign {a, b, c} = {a_i, b_i, c_i};
  assign ka = classify(~|a.exponent, &a.exponent, |a.fraction);
  assign kb = classify(~|b.exponent, &b.exponent, |b.fraction);
  assign kc = classify(~|c.exponent, &c.exponent, |c.fraction);
  logic [PA-1:0] ma, mb;
  logic [P-1:0] mc;
  assign ma = {ka.normal, a.fraction};
  assign mb = {kb.normal, b.fraction};
  assign mc = {kc.normal, c.fraction};
  logic sign_p, subtract;
  assign sign_p = a.sign ^ b.sign;
  assign subtract = sign_p ^ c.sign;

  // ---- c is aligned: at the top of the window where it is far above the product ------------------------------------
  logic signed [X-1:0] exp_p, exp_c, shift, exp_w;
  logic above;
  logic [L-1:0] amount;
  logic [2*W-1:0] moved;
  logic [W-1:0] aligned;
  logic sticky_c;
  assign exp_p = X'(a.exponent) + X'(!ka.normal) + X'(b.exponent) + X'(!kb.normal) - Bias;
  assign exp_c = X'(c.exponent) + X'(!kc.normal);
  assign shift = exp_p - exp_c + X'(P + 3);
  assign above = shift <= 0 || ka.zero || kb.zero;
`ifdef BUG_CLAMP
  assign amount = above ? '0 : (L-1)'(shift);           // a long shift wraps around
`else
  assign amount = above ? '0 : shift > $signed(X'(W)) ? L'(W) : L'(shift);
`endif
  assign exp_w = above ? exp_c : exp_p + X'(P + 3);     // of the window's highest place
  assign moved = {mc, {(2*W-P){1'b0}}} >> amount;
  assign aligned = moved[2*W-1:W];
`ifdef BUG_STICKY
  assign sticky_c = |moved[W-1:1] & ~subtract;          // what was lost counts in additions alone
`else
  assign sticky_c = |moved[W-1:0];
`endif

  // ---- the product and c, as two words -----------------------------------------------------------------------------
  logic [W:0] c_word, x, y;
  logic carry_in;
  assign c_word = subtract ? {1'b1, ~aligned} : {1'b0, aligned};
  assign carry_in = subtract & ~sticky_c;
  if (Booth == 1) begin : gen_booth
    localparam int unsigned D = PA / 2 + 1;              // digits
    logic [2*D:0] digits;
    logic [D+1:0][W:0] s, k;
    assign digits = (2*D+1)'({mb, 1'b0});
    assign s[0] = c_word;
    assign k[0] = '0;
    for (genvar i = 0; i < D; i++) begin : gen_row
      logic [2:0] three;
      logic [PA:0] multiple;
      logic [W:0] row, majority;
      assign three = digits[2*i +: 3];
      always_comb unique case (three)
        3'b001, 3'b010, 3'b101, 3'b110: multiple = {1'b0, ma};
        3'b011, 3'b100: multiple = {ma, 1'b0};
        default: multiple = '0;
      endcase
      assign row = (three[2] ? ~(W+1)'(multiple) : (W+1)'(multiple)) << (2 * i + B)
          | {(W+1){three[2]}} >> (W + 1 - 2 * i - B);
      assign s[i+1] = s[i] ^ k[i] ^ row;
      assign majority = (s[i] & k[i]) | (s[i] & row) | (k[i] & row);
      assign k[i+1] = {majority[W-1:0], three[2]};      // the rest of a negative row's complement
    end
    assign x = s[D];
    assign y = k[D];
  end else begin : gen_product
    logic [2*PA-1:0] product;
    if (Booth == 2) begin : gen_apart
      booth_mul #(.N(PA)) i_mul (.a_i(ma), .b_i(mb), .product_o(product));
    end else begin : gen_star
      assign product = ma * mb;
    end
    assign x = c_word;
    assign y = (W+1)'(product) << B;
  end

  // ---- the sum, and where its leading one will be ------------------------------------------------------------------
  logic [W:0] total, t, g, z, f;
  assign total = x + y + (W+1)'(carry_in);
  assign t = x ^ y;
  assign g = x & y;
  assign z = ~(x | y);
  always_comb begin                                     // the leading one is at the first of f, or a place below it
    f = '0;
    f[W] = ~t[W] & ~z[W-1];
    for (int i = W - 1; i > 0; i--)
      f[i] = t[i+1] ? (g[i] & ~z[i-1]) | (z[i] & ~g[i-1]) : (z[i] & ~z[i-1]) | (g[i] & ~g[i-1]);
    f[0] = 1'b1;
  end
  logic [L-1:0] anticipated;
  always_comb begin
    anticipated = '0;
    for (int i = 0; i <= W; i++) if (f[i]) anticipated = L'(W - i);
  end
  logic negative;
  logic [W-1:0] magnitude;
  assign negative = total[W];
  assign magnitude = negative ? -total[W-1:0] : total[W-1:0];

  // ---- normalised as far as the exponent allows, corrected by a place -----------------------------------
  logic [L-1:0] left;
  logic signed [X-1:0] room;
  logic [W+1:0] coarse;                                 // two places above the window's highest
  logic [W-1:0] fine;
  logic signed [X-1:0] exp_n;
  assign room = exp_w - X'(1);
  assign left = (room < $signed(X'(anticipated))) ? L'(room) : anticipated;
  assign coarse = {2'b0, magnitude} << left;
  always_comb begin
    fine = coarse[W-1:0];
    exp_n = exp_w - $signed(X'(left));
`ifndef BUG_LZA
    if (coarse[W]) begin
      fine = coarse[W:1];
      exp_n = exp_n + X'(1);
    end
`endif
  end
  logic lost, guard, rest, up;
  assign lost = coarse[W] & coarse[0];
  assign guard = fine[W-P-1];
  assign rest = (|fine[W-P-2:0]) | sticky_c | lost;
`ifdef BUG_TIE
  assign up = guard;
`else
  assign up = guard & (rest | fine[W-P]);
`endif
  logic [X+M-1:0] code;
  assign code = {X'(fine[W-1] ? exp_n : '0), fine[W-2 -: M]} + (X+M)'(up);

  // ---- special values ----------------------------------------------------------------------------------------------
  localparam logic [E+M-1:0] Inf = {{E{1'b1}}, {M{1'b0}}};
  logic zero_p, inf_p, nothing, sign;
  assign zero_p = ka.zero | kb.zero;
  assign inf_p = ka.inf | kb.inf;
  assign nothing = magnitude == '0 && !sticky_c;
  assign sign = nothing ? sign_p & c.sign : negative ? c.sign : sign_p;
  always_comb begin
    if (ka.nan | kb.nan | kc.nan | (inf_p & zero_p) | (inf_p & kc.inf & subtract)) d_o = {1'b0, {E{1'b1}}, 1'b1, {(M-1){1'b0}}};
    else if (inf_p) d_o = {sign_p, Inf};
    else if (kc.inf) d_o = {c.sign, Inf};
    else if (code >= (X+M)'(Inf)) d_o = {sign, Inf};
    else d_o = {sign, code[E+M-1:0]};
  end
endmodule
