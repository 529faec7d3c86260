module example.org/pawl/adapters/gocron

go 1.25

require (
	example.org/pawl v0.0.0
	github.com/go-co-op/gocron/v2 v2.21.2
	github.com/google/uuid v1.6.0
	github.com/jonboulle/clockwork v0.5.0
)

require github.com/robfig/cron/v3 v3.0.1 // indirect

replace example.org/pawl => ../..
