"""Models as combinational hardware, and hardware designs as terms: SystemVerilog, BTOR2, AIGER; yosys, Verilator."""
