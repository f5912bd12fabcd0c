// A fused dot-add unit: K products and c, aligned to the largest exponent, cut to F fractional bits, summed, rounded once.
// Written by hand, as a designer would, for the tests of `mmaformal signoff`.  BUG_… are what designers get wrong.
`default_nettype none
module distance #(parameter int XW = 12) (input logic [XW-1:0] away, output logic [5:0] by);
`ifdef BUG_CLAMP
    assign by = away[5:0];                                   // further than 63 wraps around
`else
    assign by = away > 63 ? 6'd63 : away[5:0];
`endif
endmodule

module fda #(
    parameter int K = 16,
    parameter int EA = 5, MA = 10,   // a and b: bits of exponent and trailing significand
    parameter int EC = 8, MC = 23,   // c and d
    parameter int F = 25,            // fractional bits kept in alignment
    parameter int EZ = -133,         // the exponent of a product or c that is zero
    parameter bit NEAREST = 0,       // d to nearest even; else toward zero
    parameter bit FIELDS = 0         // what is zero has the exponent of its fields, not EZ
) (
    input  logic [K*(1+EA+MA)-1:0] a,
    input  logic [K*(1+EA+MA)-1:0] b,
    input  logic [EC+MC:0]         c,
    output logic [EC+MC:0]         d
);
    localparam int WA = 1 + EA + MA, BA = (1 << (EA-1)) - 1, BC = (1 << (EC-1)) - 1;
    localparam int XW = 12;                                  // signed exponents
    localparam int PB = 2*MA + 2;                            // bits of a product's significand
    localparam int PW = (2*MA < F) ? F + 2 : PB;
    localparam int CW = (MC < F) ? F + 1 : MC + 1;
`ifdef BUG_CARRY
    localparam int SW = F + 2 + $clog2(K + 1);               // a carry is lost
`else
    localparam int SW = F + 3 + $clog2(K + 1);
`endif

    logic [K-1:0] sign, infinite_p, infinite_m, nan;
    logic [K*XW-1:0] exponents;
    logic [K*PB-1:0] products;

    for (genvar k = 0; k < K; k++) begin : g_product
        logic [WA-1:0] x, y;
        logic [MA:0] u, v;
        logic [EA-1:0] p, q;
        logic zero, inf_x, inf_y;
        assign x = a[k*WA +: WA];
        assign y = b[k*WA +: WA];
        assign p = x[MA +: EA];
        assign q = y[MA +: EA];
        assign u = {p != 0, x[MA-1:0]};
        assign v = {q != 0, y[MA-1:0]};
        assign zero = (u == 0) || (v == 0);
        assign products[k*PB +: PB] = PB'(u) * PB'(v);
        logic [XW-1:0] sum;
        assign sum = XW'(p) + XW'(p == 0) + XW'(q) + XW'(q == 0) - XW'(2*BA);
`ifdef BUG_ZERO_EXPONENT
        assign exponents[k*XW +: XW] = sum;
`else
        assign exponents[k*XW +: XW] = zero && !FIELDS ? XW'(EZ) : sum;
`endif
        assign sign[k] = x[WA-1] ^ y[WA-1];
        assign inf_x = (&p) && x[MA-1:0] == 0;
        assign inf_y = (&q) && y[MA-1:0] == 0;
`ifdef BUG_SPECIAL
        assign nan[k] = ((&p) && x[MA-1:0] != 0) || ((&q) && y[MA-1:0] != 0);  // 0 * inf is forgotten
`else
        assign nan[k] = ((&p) && x[MA-1:0] != 0) || ((&q) && y[MA-1:0] != 0) || ((inf_x || inf_y) && zero);
`endif
        assign infinite_p[k] = (inf_x || inf_y) && !sign[k];
        assign infinite_m[k] = (inf_x || inf_y) && sign[k];
    end

    // c
    logic [MC:0] c_significand;
    logic signed [XW-1:0] c_exponent;
    logic c_infinite, c_nan;
    assign c_significand = {c[MC +: EC] != 0, c[MC-1:0]};
    assign c_exponent = c_significand == 0 && !FIELDS ? XW'(EZ) : XW'(c[MC +: EC]) + XW'(c[MC +: EC] == 0) - XW'(BC);
    assign c_infinite = (&c[MC +: EC]) && c[MC-1:0] == 0;
    assign c_nan = (&c[MC +: EC]) && c[MC-1:0] != 0;

    // the largest exponent
    logic signed [XW-1:0] top;
    always_comb begin
        top = c_exponent;
        for (int k = 0; k < K; k++)
            if ($signed(exponents[k*XW +: XW]) > top) top = exponents[k*XW +: XW];
    end

    // alignment, and the sum
    logic [K*(F+2)-1:0] aligned;
    for (genvar k = 0; k < K; k++) begin : g_align
        logic [PW-1:0] shifted;
        logic [5:0] by;
        distance #(.XW(XW)) clamp(.away(top - exponents[k*XW +: XW]), .by(by));
        assign shifted = (PW'(products[k*PB +: PB]) << (PW - PB)) >> by;
        assign aligned[k*(F+2) +: F+2] = shifted[PW-1 -: F+2];
    end
    logic [CW-1:0] c_shifted;
    logic [SW-1:0] c_aligned, total;
    logic [5:0] c_by;
    distance #(.XW(XW)) clamp(.away(top - c_exponent), .by(c_by));
    assign c_shifted = (CW'(c_significand) << (CW - MC - 1)) >> c_by;
    assign c_aligned = SW'(c_shifted[CW-1 -: F+1]);
    always_comb begin
        total = c[EC+MC] ? -c_aligned : c_aligned;
        for (int k = 0; k < K; k++)
            if (sign[k]) total = total - SW'(aligned[k*(F+2) +: F+2]);
            else         total = total + SW'(aligned[k*(F+2) +: F+2]);
    end

    // normalisation and rounding
    localparam int MW = SW - 1, RW = MW + MC + 1;
    logic negative, up;
    logic [MW-1:0] magnitude;
    logic [$clog2(MW)-1:0] leading;
    logic signed [XW-1:0] place, e;
    logic [RW-1:0] wide, kept, lost;
    logic [7:0] drop;
    logic [EC+MC+1:0] code;
    assign negative = total[SW-1];
    assign magnitude = MW'(negative ? -total : total);
    always_comb begin
        leading = 0;
        for (int i = 0; i < MW; i++)
            if (magnitude[i]) leading = $bits(leading)'(i);
    end
    assign place = top - XW'(F) + XW'(leading);
    assign e = place < XW'(1 - BC) ? XW'(1 - BC) : place;
    assign drop = 8'(e - top + XW'(F + 1));                  // of the magnitude with MC + 1 zeros below
    assign wide = {magnitude, {(MC+1){1'b0}}};
    assign kept = wide >> drop;
    assign lost = wide & ~({RW{1'b1}} << drop);
    logic [RW-1:0] half;
    assign half = RW'(1) << (drop - 1);
`ifdef BUG_STICKY
    assign up = NEAREST && (lost & half) != 0 && kept[0];    // what is below the half is forgotten
`else
    assign up = NEAREST && (lost & half) != 0 && ((lost & ~half) != 0 || kept[0]);
`endif
    assign code = magnitude == 0 ? '0
                : ((EC+MC+2)'(unsigned'(e + XW'(BC - 1))) << MC) + (EC+MC+2)'(kept) + (EC+MC+2)'(up);

    // special values
    logic is_nan, plus, minus;
    assign plus = (|infinite_p) || (c_infinite && !c[EC+MC]);
    assign minus = (|infinite_m) || (c_infinite && c[EC+MC]);
    assign is_nan = (|nan) || c_nan || (plus && minus);
    localparam logic [EC+MC:0] INF = {1'b0, {EC{1'b1}}, {MC{1'b0}}};
    always_comb begin
        if (is_nan) d = {1'b0, {(EC+MC){1'b1}}};
        else if (plus) d = INF;
        else if (minus) d = INF | {1'b1, {(EC+MC){1'b0}}};
        else if (code >= (EC+MC+2)'(INF)) d = {negative, INF[EC+MC-1:0]};
        else d = {negative && code != 0, code[EC+MC-1:0]};
    end
endmodule
`default_nettype wire
