// Package hole measures how often the leader elector of client-go, with a Lease object, has two
// leaders at once without any error of a clock. It has only tests; they run the real elector and
// the real client of the API server. The API server is a small one in memory, and the network
// between them is made by the test, and so is the time (testing/synctest): a thousand elections
// take seconds.
//
//	go test -v ./hole -run TwoLeaders -hole.runs 2000
//	go test -v ./hole -run RealTime -hole.real 60
//
// The second command needs no simulated time: it runs as many elections side by side, with sockets
// and with the times that controllers use, and takes a minute.
package hole
