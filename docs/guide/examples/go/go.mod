module example.org/pawl/guide

go 1.25

require example.org/pawl v0.0.0

// In this tree the package is not downloaded. Leave the line out in a program of your own.
replace example.org/pawl => ../../../../bindings/go
