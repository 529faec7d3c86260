module example.org/pawl/adapters/redsync

go 1.26.0

require (
	example.org/pawl v0.0.0
	github.com/go-redsync/redsync/v4 v4.18.1
)

replace example.org/pawl => ../..
