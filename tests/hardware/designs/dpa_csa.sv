// A carry-save tree: N words to two, by rows of 3:2 compressors.
module dpa_csa #(parameter int unsigned N = 5, parameter int unsigned W = 32) (
  input  logic [N-1:0][W-1:0] words_i,
  output logic [W-1:0]        sum_o,
  output logic [W-1:0]        carry_o
);
  logic [N-2:0][W-1:0] s, c;
  assign s[0] = words_i[0];
  assign c[0] = words_i[1];
  for (genvar i = 2; i < N; i++) begin : gen_row
    logic [W-1:0] majority;
    assign s[i-1]   = s[i-2] ^ c[i-2] ^ words_i[i];
    assign majority = (s[i-2] & c[i-2]) | (s[i-2] & words_i[i]) | (c[i-2] & words_i[i]);
    assign c[i-1]   = {majority[W-2:0], 1'b0};
  end
  assign sum_o   = s[N-2];
  assign carry_o = c[N-2];
endmodule
