// fp16 fused multiply-add, to nearest even, subnormals kept: a near path for cancellation, a far path for the rest.
// One register at the end.  BUG_… are what designers get wrong.
package fma_pkg;
  typedef struct packed { logic sign; logic [4:0] exponent; logic [9:0] mantissa; } fp16_t;
  typedef struct packed { fp16_t a; fp16_t b; fp16_t c; } operands_t;
  typedef enum logic [2:0] {RNE, RTZ, RDN, RUP, RMM} roundmode_e;
`ifdef BUG_HIDDEN
  function automatic logic [10:0] significand(fp16_t x); return {x.exponent != '0 || x.mantissa == '0, x.mantissa};
  endfunction                                           // a zero has a hidden bit
`else
  function automatic logic [10:0] significand(fp16_t x); return {x.exponent != '0, x.mantissa}; endfunction
`endif
  function automatic logic signed [7:0] unbiased(fp16_t x);
    return $signed({3'b0, x.exponent}) + $signed({7'b0, x.exponent == '0}) - 8'sd15;
  endfunction
  function automatic logic is_nan(fp16_t x); return (&x.exponent) && x.mantissa != '0; endfunction
  function automatic logic is_inf(fp16_t x); return (&x.exponent) && x.mantissa == '0; endfunction
  function automatic logic is_zero(fp16_t x); return x.exponent == '0 && x.mantissa == '0; endfunction
endpackage

module fma16 import fma_pkg::*; (
  input  logic       clk_i, rst_ni,
  input  operands_t  operands_i,       // a in the highest bits
  input  roundmode_e rm_i,
  input  logic       valid_i,
  output logic       valid_o,
  output fp16_t      result_o
);
  fp16_t a, b, c;
  assign {a, b, c} = operands_i;
  logic sign_p, subtract, zero_p;
  logic [21:0] product;
  logic signed [7:0] exp_p, exp_c, diff;
  assign sign_p = a.sign ^ b.sign;
  assign subtract = sign_p ^ c.sign;
  assign product = significand(a) * significand(b);
  assign zero_p = is_zero(a) | is_zero(b);
  assign exp_p = unbiased(a) + unbiased(b);             // of the bit 20
  assign exp_c = unbiased(c);
  assign diff = exp_p - exp_c;

  // ---- near path: exponents close, exact subtraction -----------------------------------------------------------------
  // both as multiples of 2^(exp_p - 22): the product at bit 2, c between 2^9 below and 2^2 above
  logic [47:0] near_p, near_c;
  logic signed [49:0] near_d;
  logic near;
  assign near = subtract && diff <= 8'sd2 && diff >= -8'sd3;
  assign near_p = {24'b0, product, 2'b0};
  assign near_c = diff >= 0 ? {25'b0, significand(c), 12'b0} >> diff[1:0] : {25'b0, significand(c), 12'b0} << 2'(-diff);
  assign near_d = $signed({2'b0, near_p}) - $signed({2'b0, near_c});
`ifdef LZA
  // the place of the leading one anticipated from the operands: right, or one too high
  logic [49:0] lza_t, lza_g, lza_z, lza_f;
  assign lza_t = {2'b0, near_p} ^ ~{2'b0, near_c};
  assign lza_g = {2'b0, near_p} & ~{2'b0, near_c};
  assign lza_z = ~{2'b0, near_p} & {2'b0, near_c};
  always_comb begin
    lza_f = '0;
    for (int i = 0; i < 49; i++)
      lza_f[i] = lza_t[i+1] ? (lza_g[i] & ~(i > 0 && lza_z[i-1])) | (lza_z[i] & ~(i > 0 && lza_g[i-1]))
                            : (lza_z[i] & ~(i > 0 && lza_z[i-1])) | (lza_g[i] & ~(i > 0 && lza_g[i-1]));
  end
`endif

  // ---- far path: the smaller one aligned, sticky --------------------------------------------------------------------
  // 13 places above the product's, 22 and sticky below
  logic [47:0] far_p, far_c, far_big, far_small;
  logic far_sticky, c_larger;
  logic [5:0] away;
  logic [95:0] shifted;
  logic [49:0] far_d;
  assign c_larger = diff < 8'sd0 && !(c.exponent == '0 && c.mantissa == '0) || zero_p;
  assign far_p = {2'b0, product, 24'b0};
  assign far_c = {3'b0, significand(c), 34'b0};
  assign far_big = c_larger ? far_c : far_p;
  logic [7:0] distance;
  assign distance = c_larger ? -diff : diff;
`ifdef BUG_CLAMP
  assign away = {1'b0, distance[4:0]};                  // further than 31 wraps around
`else
  assign away = distance > 8'd48 ? 6'd48 : distance[5:0];
`endif
  assign shifted = {c_larger ? far_p : far_c, 48'b0} >> away;
`ifdef BUG_JOINED
  // a narrower window, and what is shifted out of it is joined to the difference, not taken from it
  assign far_small = {shifted[95:68], 20'b0};
  assign far_sticky = |shifted[67:0];
  assign far_d = subtract ? {2'b0, far_big} - {2'b0, far_small} : {2'b0, far_big} + {2'b0, far_small};
`else
  assign far_small = shifted[95:48];
  assign far_sticky = |shifted[47:0];
  assign far_d = subtract ? {2'b0, far_big} - {2'b0, far_small} - 50'(far_sticky) : {2'b0, far_big} + {2'b0, far_small};
`endif

  // ---- one of both, normalised and rounded --------------------------------------------------------------------------
  logic negative, sticky;
  logic [49:0] magnitude;
  logic signed [8:0] unit;                              // the exponent of the magnitude's bit 0
  logic [5:0] leading;
  always_comb begin
    if (near) begin
      negative = near_d[49] ? c.sign : sign_p;
      magnitude = near_d[49] ? -near_d : near_d;
      unit = 9'(exp_p) - 9'sd22;
      sticky = 1'b0;
    end else begin
      negative = far_d[49] ? ~(c_larger ? c.sign : sign_p) : c_larger ? c.sign : sign_p;
      magnitude = far_d[49] ? -far_d : far_d;
      unit = (c_larger ? 9'(exp_c) : 9'(exp_p)) - 9'sd44;
      sticky = far_sticky;
    end
    leading = '0;
    for (int i = 0; i < 50; i++) if (magnitude[i]) leading = 6'(i);
`ifdef LZA
    if (near) begin
      leading = '0;
      for (int i = 0; i < 50; i++) if (lza_f[i]) leading = 6'(i);
`ifndef BUG_LZA
      if (!magnitude[leading] && leading != '0) leading = leading - 6'd1;
`endif
    end
`endif
  end
  logic signed [8:0] top, least, drop;
  logic [110:0] wide;
  logic [60:0] kept;
  logic guard, rest, up;
  logic [16:0] code;
  assign top = unit + $signed({3'b0, leading});
`ifdef BUG_SUBNORMAL
  assign least = top;                                   // a subnormal result is not denormalised
`elsif BUG_TINY
  assign least = top < -9'sd15 ? -9'sd14 : top;         // what is just below the least normal number is not tiny
`else
  assign least = top < -9'sd14 ? -9'sd14 : top;
`endif
  assign drop = least - 9'sd10 - unit;                  // bits below the last one that is kept; may be negative
  assign wide = drop < 0 ? {11'b0, magnitude, 50'b0} << 4'(-drop) : {11'b0, magnitude, 50'b0} >> (drop > 9'sd60 ? 6'd60 : 6'(drop));
  assign kept = wide[110:50];
  assign guard = wide[49];
`ifdef BUG_STICKY
  assign rest = (|wide[48:40]) | sticky;                // bits further down are forgotten
`else
  assign rest = (|wide[48:0]) | sticky | (drop > 9'sd60 && magnitude != '0);
`endif
  assign up = guard & (rest | kept[0]);
`ifdef BUG_CARRY
  assign code = {1'b0, 5'(least + 9'sd14), 11'b0} / 17'd2 + 17'(11'(kept[10:0] + 11'(up)));
`else
  assign code = 17'(($signed({1'b0, 16'(least + 9'sd14)})) << 10) + 17'(kept[11:0]) + 17'(up);
`endif
  // ---- special values ------------------------------------------------------------------------------------------------
  fp16_t r;
  logic inf_p;
  assign inf_p = is_inf(a) | is_inf(b);
  always_comb begin
`ifdef BUG_NAN
    if (is_nan(a) | is_nan(b) | is_nan(c) | (inf_p & is_inf(c) & subtract)) r = 16'h7e00; // inf * 0 is forgotten
`else
    if (is_nan(a) | is_nan(b) | is_nan(c) | (inf_p & zero_p) | (inf_p & is_inf(c) & subtract)) r = 16'h7e00;
`endif
    else if (inf_p) r = {sign_p, 15'h7c00};
    else if (is_inf(c)) r = c;
`ifdef BUG_ZERO_SIGN
    else if (magnitude == '0 && !sticky) r = {sign_p, 15'b0}; // x - x has the sign of x
`else
    else if (magnitude == '0 && !sticky) r = {subtract ? rm_i == RDN : sign_p, 15'b0};
`endif
`ifdef BUG_OVERFLOW
    else if (code >= 17'h07c00) r = {negative, 15'h7bff}; // the largest number in the place of infinity
`else
    else if (code >= 17'h07c00) r = {negative, 15'h7c00};
`endif
    else r = {negative, code[14:0]};
  end
  always_ff @(posedge clk_i or negedge rst_ni)
    if (!rst_ni) {valid_o, result_o} <= '0;
    else {valid_o, result_o} <= {valid_i, r};
endmodule
