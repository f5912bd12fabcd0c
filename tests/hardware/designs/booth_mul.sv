// A multiplier: radix-4 Booth digits of b, rows of 3:2 compressors, a Kogge-Stone adder.  Combinational.
// BUG_… are what designers get wrong.
module booth_mul #(parameter int unsigned N = 11, localparam int unsigned W = 2 * N) (
  input  logic [N-1:0] a_i, b_i,
  output logic [W-1:0] product_o
);
  localparam int unsigned D = N / 2 + 1;                // digits
  localparam int unsigned L = $clog2(W);                // levels of the adder
  logic [2*D:0] digits;
  logic [D:0][W-1:0] s, k;
  assign digits = (2*D+1)'({b_i, 1'b0});
  for (genvar i = 0; i < D; i++) begin : gen_row
    logic [2:0] three;
    logic [N:0] multiple;
    logic [W-1:0] row, majority;
    assign three = digits[2*i +: 3];
    always_comb unique case (three)
      3'b001, 3'b010, 3'b101, 3'b110: multiple = {1'b0, a_i};
      3'b011, 3'b100: multiple = {a_i, 1'b0};
      default: multiple = '0;
    endcase
`ifdef BUG_NEGATIVE
    assign row = W'(three[2] ? ~W'(multiple) : W'(multiple)) << (2 * i);    // negated with zeros below
`else
    assign row = three[2] ? ~(W'(multiple) << (2 * i)) : W'(multiple) << (2 * i);
`endif
    if (i == 0) begin : gen_first
      assign s[0] = row;
      assign k[0] = {{(W-1){1'b0}}, three[2]};          // the rest of a negative row's complement
    end else begin : gen_next
      assign s[i] = s[i-1] ^ k[i-1] ^ row;
      assign majority = (s[i-1] & k[i-1]) | (s[i-1] & row) | (k[i-1] & row);
      assign k[i] = {majority[W-2:0], three[2]};
    end
  end
  logic [L:0][W-1:0] g, p;
  assign g[0] = s[D-1] & k[D-1];
  assign p[0] = s[D-1] ^ k[D-1];
  for (genvar i = 0; i < L; i++) begin : gen_level
    assign g[i+1] = g[i] | (p[i] & (g[i] << (1 << i)));
    assign p[i+1] = p[i] & ((p[i] << (1 << i)) | W'((1 << (1 << i)) - 1));
  end
`ifdef BUG_PREFIX
  assign product_o = p[0] ^ (g[L-1] << 1);              // a level of the adder is missing
`else
  assign product_o = p[0] ^ (g[L] << 1);
`endif
endmodule
