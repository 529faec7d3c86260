module example.org/pawl/adapters/etcd

go 1.25

require example.org/pawl v0.0.0

replace example.org/pawl => ../..
