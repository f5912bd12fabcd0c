// Integers: K products of unsigned and signed codes of N bits and an accumulator, one cycle.  Pairs of products are added
// and clamped to 2N bits where Pairs is set, and the accumulator is clamped where Clamp is.  BUG_… are what designers get
// wrong.
module idot #(
  parameter int K = 4, N = 8, parameter bit Pairs = 1, Clamp = 1, parameter int W = 32
) (
  input  logic clk_i,
  input  logic [K-1:0][N-1:0] a,                       // unsigned
  input  logic signed [K-1:0][N-1:0] b,
  input  logic [W-1:0] c,
  output logic [W-1:0] d
);
  logic signed [K-1:0][2*N:0] product;
  logic signed [W+4:0] total;
  for (genvar k = 0; k < K; k++) begin : gen_product
`ifdef BUG_SIGN
    assign product[k] = (2*N+1)'(signed'(a[k])) * (2*N+1)'(signed'(b[k]));
`else
    assign product[k] = (2*N+1)'(signed'({1'b0, a[k]})) * (2*N+1)'(signed'(b[k]));
`endif
  end

  localparam logic signed [2*N+1:0] PAIR = (2*N+2)'({1'b0, {(2*N-1){1'b1}}});
  function automatic logic signed [2*N+1:0] clamped(logic signed [2*N+1:0] x);
`ifdef BUG_PAIR
    return (2*N+2)'(signed'(x[2*N-1:0]));                  // wraps around
`else
    return x > PAIR ? PAIR : x < ~PAIR ? ~PAIR : x;
`endif
  endfunction

  if (Pairs) begin : gen_pairs
    always_comb begin
      total = (W+5)'(signed'(c));
      for (int k = 0; k < K; k += 2)
        total = total + (W+5)'(clamped((2*N+2)'(signed'(product[k])) + (2*N+2)'(signed'(product[k+1]))));
    end
  end else begin : gen_all
    always_comb begin
      total = (W+5)'(signed'(c));
      for (int k = 0; k < K; k++) total = total + (W+5)'(signed'(product[k]));
    end
  end

  localparam logic signed [W+4:0] MOST = (W+5)'({1'b0, {(W-1){1'b1}}});
`ifdef BUG_CLAMP
  wire over = total[W] != total[W-1];                  // right of two terms, not of more
  wire [W-1:0] kept = over ? {total[W], {(W-1){~total[W]}}} : total[W-1:0];
`else
  wire [W-1:0] kept = total > MOST ? MOST[W-1:0] : total < ~MOST ? ~MOST[W-1:0] : total[W-1:0];
`endif
  always_ff @(posedge clk_i) d <= Clamp ? kept : total[W-1:0];
endmodule
