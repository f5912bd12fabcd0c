// The unit's files, packages first.
+incdir+inc
dpa_pkg.sv
dpa_csa.sv
dpa_pipe.sv   # registers
dpa.sv
