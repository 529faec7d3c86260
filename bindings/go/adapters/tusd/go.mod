module example.org/pawl/adapters/tusd

go 1.25

require (
	example.org/pawl v0.0.0
	github.com/tus/tusd/v2 v2.9.1
	golang.org/x/exp v0.0.0-20250106191152-7588d65b2ba8
)

replace example.org/pawl => ../..
