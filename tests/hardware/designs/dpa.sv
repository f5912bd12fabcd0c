// Dot-product-accumulate: K products and c, aligned to the largest exponent, cut to F fractional bits, added by a
// carry-save tree, rounded toward zero.  Three pipeline stages.  BUG_… are what designers get wrong.
`include "dpa_defs.svh"
module dpa import dpa_pkg::*; #(
  parameter fp_format_t  SrcFmt = FP16,
  parameter fp_format_t  DstFmt = FP32,
  parameter int unsigned K      = 4,
  parameter int unsigned F      = 23,
  parameter int          ZeroExp = -131,
  parameter bit          Tree    = 1,                  // a carry-save tree, or adders one after the other
  localparam int unsigned SW = fp_width(SrcFmt),
  localparam int unsigned DW = fp_width(DstFmt)
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,
  // operands: x0, y0, x1, y1, …
  input  logic [2*K-1:0][SW-1:0]   operands_i,
  input  logic [DW-1:0]            addend_i,
  input  roundmode_e               rnd_mode_i,
  input  logic                     in_valid_i,
  output logic                     in_ready_o,
  input  logic                     flush_i,
  output logic [DW-1:0]            result_o,
  output logic                     out_valid_o,
  input  logic                     out_ready_i
);
  localparam int unsigned SE = SrcFmt.exp_bits, SM = SrcFmt.man_bits, DE = DstFmt.exp_bits, DM = DstFmt.man_bits;
  localparam int unsigned XW = `DPA_EXPONENT_BITS;
  localparam int unsigned PB = 2 * SM + 2;             // of a product's significand
  localparam int unsigned TW = F + 3 + $clog2(K + 1);  // of the sum
  localparam int unsigned AW = (2 * SM < F) ? F + 2 : PB;
  typedef struct packed { logic sign; logic [SE-1:0] exponent; logic [SM-1:0] mantissa; } src_t;
  typedef struct packed { logic sign; logic [DE-1:0] exponent; logic [DM-1:0] mantissa; } dst_t;
  typedef struct packed { logic sign; logic signed [XW-1:0] exponent; logic [PB-1:0] significand; } prod_t;
  typedef struct packed { logic nan; logic plus; logic minus; } special_t;
  typedef struct packed { prod_t [K-1:0] products; dst_t addend; special_t special; } stage1_t;
  typedef struct packed { logic [TW-1:0] total; logic signed [XW-1:0] top; special_t special; } stage2_t;

  function automatic fp_class_t classify(src_t x);
    fp_class_t c;
    c.is_zero = (x.exponent == '0) && (x.mantissa == '0);
    c.is_inf  = (x.exponent == '1) && (x.mantissa == '0);
    c.is_nan  = (x.exponent == '1) && (x.mantissa != '0);
    return c;
  endfunction

  // ---- stage 1: products -------------------------------------------------------------------------------------------
  stage1_t s1_d, s1_q;
  logic [K-1:0] nan, plus, minus;
  for (genvar k = 0; k < K; k++) begin : gen_product
    src_t x, y;
    fp_class_t cx, cy;
    logic [SM:0] mx, my;
    logic zero, inf;
    assign x = operands_i[2*k];
    assign y = operands_i[2*k+1];
    assign cx = classify(x);
    assign cy = classify(y);
`ifdef BUG_HIDDEN
    assign mx = {!cx.is_zero, x.mantissa};              // a subnormal gets a hidden bit
`else
    assign mx = {x.exponent != '0, x.mantissa};
`endif
    assign my = {y.exponent != '0, y.mantissa};
    assign zero = cx.is_zero | cy.is_zero;
    assign inf  = cx.is_inf | cy.is_inf;
    assign s1_d.products[k].sign = x.sign ^ y.sign;
    assign s1_d.products[k].significand = PB'(mx) * PB'(my);
    assign s1_d.products[k].exponent = zero ? XW'(ZeroExp)
        : XW'(x.exponent) + XW'(x.exponent == '0) + XW'(y.exponent) + XW'(y.exponent == '0) - XW'(2 * bias(SrcFmt));
`ifdef BUG_NAN
    assign nan[k]   = cx.is_nan | cy.is_nan;            // inf * 0 is forgotten
`else
    assign nan[k]   = cx.is_nan | cy.is_nan | (inf & zero);
`endif
    assign plus[k]  = inf & ~(x.sign ^ y.sign);
    assign minus[k] = inf & (x.sign ^ y.sign);
  end
  dst_t c;
  logic c_inf, c_nan;
  assign c = addend_i;
  assign c_inf = (c.exponent == '1) && (c.mantissa == '0);
  assign c_nan = (c.exponent == '1) && (c.mantissa != '0);
  assign s1_d.addend = c;
  assign s1_d.special.plus  = (|plus) | (c_inf & ~c.sign);
  assign s1_d.special.minus = (|minus) | (c_inf & c.sign);
  assign s1_d.special.nan   = (|nan) | c_nan | (s1_d.special.plus & s1_d.special.minus);

  logic v1, r1, v2, r2;
  dpa_pipe #(.W($bits(stage1_t))) i_pipe1 (
    .clk_i, .rst_ni, .flush_i, .valid_i(in_valid_i), .ready_o(in_ready_o), .data_i(s1_d),
    .valid_o(v1), .ready_i(r1), .data_o(s1_q));

  // ---- stage 2: alignment and the sum ------------------------------------------------------------------------------
  stage2_t s2_d, s2_q;
  logic signed [XW-1:0] c_exponent, top;
  logic [DM:0] c_significand;
  assign c_significand = {s1_q.addend.exponent != '0, s1_q.addend.mantissa};
  assign c_exponent = c_significand == '0 ? XW'(ZeroExp)
      : XW'(s1_q.addend.exponent) + XW'(s1_q.addend.exponent == '0) - XW'(bias(DstFmt));
  always_comb begin
    top = c_exponent;
    for (int unsigned k = 0; k < K; k++)
      if (s1_q.products[k].exponent > top) top = s1_q.products[k].exponent;
  end
  function automatic logic [5:0] distance(logic signed [XW-1:0] high, logic signed [XW-1:0] low);
    logic [XW-1:0] away;
    away = high - low;
`ifdef BUG_CLAMP
    return away[5:0];                                   // further than 63 wraps around
`else
    return away > XW'(63) ? 6'd63 : away[5:0];
`endif
  endfunction
  logic [K:0][TW-1:0] words;
  for (genvar k = 0; k < K; k++) begin : gen_align
    logic [AW-1:0] shifted;
    assign shifted = (AW'(s1_q.products[k].significand) << (AW - PB)) >> distance(top, s1_q.products[k].exponent);
    assign words[k] = s1_q.products[k].sign ? -TW'(shifted[AW-1 -: F+2]) : TW'(shifted[AW-1 -: F+2]);
  end
  logic [F:0] c_aligned;
  assign c_aligned = ((F+1)'(c_significand) << (F - DM)) >> distance(top, c_exponent);
  assign words[K] = s1_q.addend.sign ? -TW'(c_aligned) : TW'(c_aligned);
  if (Tree) begin : gen_tree
    logic [TW-1:0] sum, carry;
    dpa_csa #(.N(K + 1), .W(TW)) i_csa (.words_i(words), .sum_o(sum), .carry_o(carry));
    assign s2_d.total = sum + carry;
  end else begin : gen_chain
    always_comb begin
      s2_d.total = words[K];
      for (int unsigned k = 0; k < K; k++) s2_d.total = s2_d.total + words[k];
    end
  end
  assign s2_d.top = top;
`ifdef BUG_PIPE
  assign s2_d.special = s1_d.special;                   // of the operands that come a cycle later
`else
  assign s2_d.special = s1_q.special;
`endif
  dpa_pipe #(.W($bits(stage2_t))) i_pipe2 (
    .clk_i, .rst_ni, .flush_i, .valid_i(v1), .ready_o(r1), .data_i(s2_d),
    .valid_o(v2), .ready_i(r2), .data_o(s2_q));

  // ---- stage 3: normalisation --------------------------------------------------------------------------------------
  localparam int unsigned MW = TW - 1, RW = MW + DM + 1;
  logic negative;
  logic [MW-1:0] magnitude;
  logic [$clog2(MW)-1:0] leading;
  logic signed [XW-1:0] place, e;
  logic [RW-1:0] kept;
  logic [DE+DM+1:0] code;
  assign negative = s2_q.total[TW-1];
  assign magnitude = MW'(negative ? -s2_q.total : s2_q.total);
  always_comb begin
    leading = '0;
    for (int i = 0; i < MW; i++) if (magnitude[i]) leading = $bits(leading)'(i);
  end
  assign place = s2_q.top - XW'(F) + XW'(leading);
  assign e = place < XW'(1 - int'(bias(DstFmt))) ? XW'(1 - int'(bias(DstFmt))) : place;
  assign kept = {magnitude, {(DM+1){1'b0}}} >> 8'(e - s2_q.top + XW'(F + 1));
  assign code = magnitude == '0 ? '0
      : ((DE+DM+2)'(unsigned'(e + XW'(bias(DstFmt) - 1))) << DM) + (DE+DM+2)'(kept);
  dst_t r;
  localparam logic [DE+DM-1:0] INF = {{DE{1'b1}}, {DM{1'b0}}};
  always_comb begin
    if (s2_q.special.nan)                  r = {1'b0, {(DE+DM){1'b1}}};
    else if (s2_q.special.plus)            r = {1'b0, INF};
    else if (s2_q.special.minus)           r = {1'b1, INF};
    else if (code >= (DE+DM+2)'(INF))      r = {negative, INF};
`ifdef BUG_ZERO_SIGN
    else                                   r = {s1_q.addend.sign && code == '0 || negative, code[DE+DM-1:0]};
`else
    else                                   r = {negative && code != '0, code[DE+DM-1:0]};
`endif
  end
  dpa_pipe #(.W($bits(dst_t))) i_pipe3 (
    .clk_i, .rst_ni, .flush_i, .valid_i(v2), .ready_o(r2), .data_i(r),
    .valid_o(out_valid_o), .ready_i(out_ready_i), .data_o(result_o));

`ifndef SYNTHESIS
  initial assert (K >= 1);
`endif
  assert property (@(posedge clk_i) disable iff (!rst_ni) out_valid_o && !out_ready_i |=> out_valid_o);
endmodule
