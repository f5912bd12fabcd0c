`define CODES 16
