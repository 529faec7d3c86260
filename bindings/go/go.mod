module example.org/pawl

go 1.25
