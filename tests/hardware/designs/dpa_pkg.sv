// Formats and helpers of the dot-product-accumulate unit: written for the tests of `mmaformal signoff`.
package dpa_pkg;
  typedef struct packed { int unsigned exp_bits; int unsigned man_bits; } fp_format_t;
  typedef enum logic [2:0] {RNE = 3'd0, RTZ = 3'd1} roundmode_e;
  typedef struct packed { logic is_zero; logic is_inf; logic is_nan; } fp_class_t;

  localparam fp_format_t FP16 = '{exp_bits: 5, man_bits: 10};
  localparam fp_format_t FP32 = '{exp_bits: 8, man_bits: 23};
  localparam fp_format_t E5M2 = '{exp_bits: 5, man_bits: 2};

  function automatic int unsigned fp_width(fp_format_t f);
    return 1 + f.exp_bits + f.man_bits;
  endfunction
  function automatic int unsigned bias(fp_format_t f);
    return (1 << (f.exp_bits - 1)) - 1;
  endfunction
endpackage
