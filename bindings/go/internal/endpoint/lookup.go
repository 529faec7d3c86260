package endpoint

import (
	"context"
	"net"
	"strconv"
	"strings"
	"time"
)

// hostsTime is how long the hosts of SRV records are looked up.
const hostsTime = 10 * time.Second

// LookUp asks the system where the source leads to. Families of addresses keep the order that the
// system gives them, and SRV records are in the order of their priorities and weights.
func LookUp(ctx context.Context, source Endpoint) ([]Place, error) {
	if !source.SRV {
		return hosts(ctx, source.Host, source.Port, 0)
	}
	_, records, err := net.DefaultResolver.LookupSRV(ctx, "", "", source.Host)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, hostsTime)
	defer cancel()
	var found []Place
	var failure error
	for i, record := range records {
		host := strings.TrimSuffix(record.Target, ".")
		places, err := hosts(ctx, host, strconv.Itoa(int(record.Port)), 2*i)
		if err != nil {
			failure = err
		}
		found = append(found, places...)
	}
	if len(found) > 0 {
		failure = nil
	}
	return found, failure
}

func hosts(ctx context.Context, host, port string, rank int) ([]Place, error) {
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	var found []Place
	for _, a := range addresses {
		a = a.Unmap()
		own := rank
		if a.Is4() != addresses[0].Unmap().Is4() {
			own++
		}
		found = append(found, Place{Host: host, Port: port, Address: a.String(), Rank: own})
	}
	return found, nil
}
