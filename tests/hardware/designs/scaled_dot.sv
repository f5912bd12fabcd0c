// A block of K products of E2M1 with a pair of scales: the exact sum, scaled, and c of FP32, cut to F places below the
// larger exponent, added, rounded toward zero.  SM = 3: NVFP4, scales of UE4M3; SE = 8, SM = 0: MXFP4, scales of UE8M0.
// BUG_… are what designers get wrong.
module scaled_dot #(
  parameter int K = 4, F = 35, SE = 4, SM = 3,
  localparam int BS = (1 << (SE - 1)) - 1,
  localparam int X  = SE + 4 < 10 ? 10 : SE + 4,       // bits of an exponent
  localparam int EZ = (SM == 0 ? -2 * BS : -126) - 1   // that of zeros
) (
  input  logic [K-1:0][3:0] a, b,
  input  logic [7:0]        scale_a, scale_b,
  input  logic [31:0]       c,
  output logic [31:0]       d
);
  localparam int GB = 8 + $clog2(K);                   // of the sum of products, in quarters
  localparam int TB = GB + 2 * SM + 2;                 // of it with the scales' significands
  localparam int P  = 2 + 2 * SM;                      // fractional places of that
  localparam int AW = F + TB - P, SW = AW + 2;

  function automatic logic [3:0] halves(logic [2:0] x);
    return x[2:1] == 0 ? {3'b0, x[0]} : {2'b0, 1'b1, x[0]} << (x[2:1] - 1);
  endfunction

  // ---- the sum of products, scaled ---------------------------------------------------------------------------------
  logic signed [GB:0] sum;
  logic some;
  always_comb begin
    sum = '0;
    some = 1'b0;
    for (int k = 0; k < K; k++) begin
      automatic logic [7:0] product = 8'(halves(a[k][2:0])) * 8'(halves(b[k][2:0]));
      sum = sum + (a[k][3] ^ b[k][3] ? -(GB+1)'(product) : (GB+1)'(product));
      some |= |product;
    end
  end
  wire negative_sum = sum[GB];
  wire [GB-1:0] magnitude = GB'(negative_sum ? -sum : sum);
  logic [SM:0] ma, mb;
  logic [SE-1:0] fa, fb;
  logic nan_a, nan_b;
  logic signed [X-1:0] scale;
  if (SM == 0) begin : gen_powers
    assign {fa, fb, ma, mb} = {scale_a, scale_b, 1'b1, 1'b1};
    assign {nan_a, nan_b} = {&scale_a, &scale_b};
    assign scale = X'(fa) + X'(fb) - X'(2 * BS);
  end else begin : gen_floats
    assign {fa, fb} = {scale_a[SM+:SE], scale_b[SM+:SE]};
    assign {ma, mb} = {|fa, scale_a[SM-1:0], |fb, scale_b[SM-1:0]};
    assign {nan_a, nan_b} = {&scale_a[6:0], &scale_b[6:0]};
`ifdef BUG_SUBNORMAL
    assign scale = X'(fa) + X'(fb) - X'(2 * BS);       // a subnormal scale has the exponent of the least normal one
`else
    assign scale = X'(fa) + X'(~|fa) + X'(fb) + X'(~|fb) - X'(2 * BS);
`endif
  end
  wire [2*SM+1:0] both = (2*SM+2)'(ma) * (2*SM+2)'(mb);
  wire [TB-1:0] term = TB'(magnitude) * TB'(both);
  wire zero = ~some | ~|ma | ~|mb;
  wire signed [X-1:0] et = zero ? X'(EZ) : scale;

  // ---- with c --------------------------------------------------------------------------------------------------------
  wire [23:0] mc = {|c[30:23], c[22:0]};
  wire signed [X-1:0] ec = ~|mc ? X'(EZ) : X'(c[30:23]) + X'(~|c[30:23]) - X'(127);
  wire signed [X-1:0] top = et > ec ? et : ec;
  wire [X-1:0] dt = top - et, dc = top - ec;
  wire [AW-1:0] tf = AW'(term) << (F - P), cf = AW'(mc) << (F - 23);
  wire [AW-1:0] ts = dt > AW ? '0 : tf >> dt, cs = dc > AW ? '0 : cf >> dc;
  wire [SW-1:0] total = (negative_sum ? -SW'(ts) : SW'(ts)) + (c[31] ? -SW'(cs) : SW'(cs));

  // ---- normalised, cut -----------------------------------------------------------------------------------------------
  localparam int MW = SW - 1, RW = MW + 24;
  wire negative = total[SW-1];
  wire [MW-1:0] size = MW'(negative ? -total : total);
  logic [$clog2(MW)-1:0] leading;
  always_comb begin
    leading = '0;
    for (int i = 0; i < MW; i++) if (size[i]) leading = $bits(leading)'(i);
  end
  wire signed [X-1:0] place = top - X'(F) + X'(leading);
  wire signed [X-1:0] e = place < X'(-126) ? X'(-126) : place;
  wire [X-1:0] drop = e - top + X'(F + 1);             // of the magnitude with 24 zeros below
  wire [RW-1:0] wide = {size, 24'b0};
  wire [RW-1:0] kept = drop > RW ? '0 : wide >> drop;
  wire [X+23:0] code = size == 0 ? '0 : ((X+24)'(unsigned'(X'(e + 126))) << 23) + (X+24)'(kept);
`ifdef BUG_NAN
  wire nan = &c[30:23] & |c[22:0];                     // a scale that is a NaN is forgotten
`else
  wire nan = (&c[30:23] & |c[22:0]) | nan_a | nan_b;
`endif
  assign d = nan ? 32'h7fffffff : &c[30:23] ? c
           : code >= (X+24)'(32'h7f800000) ? {negative, 31'h7f800000} : {negative & |code, code[30:0]};
endmodule
