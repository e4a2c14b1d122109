package storetest

import (
	"math/rand/v2"
	"testing"

	"linkstream/schema"
)

// TestMove checks that move changes no result except for the positions. move makes an empty store count the clicks of
// another store, and may be repeated at any time. The new store begins without positions, and lanes go on there.
func TestMove(t *testing.T, from, to ClickStores, move func()) {
	model := newModel()
	random := rand.New(rand.NewPCG(15, 16))
	var clicks []click
	for partition := range 2 {
		clicks = append(clicks, randomClicks(random, 400, 6)...)
		model.insert(t, from, partition, clicks[400*partition:]...)
		model.insert(t, from, partition, spread(40)...)
	}
	more := clicksOf(spreadLink, 3)
	more[1].lane = lane(7, 99)
	model.insert(t, from, 2, more...)
	model.set(t, from, randomHistories(random, 9)...)
	const owner = 2 + randomLink%5
	model.set(t, from, HistoryOf(owner, randomLink, "moves", epoch, 1, 2), HistoryOf(owner, randomLink, "goes", epoch, 3))
	model.check(t, from)
	for range 2 {
		move()
		for _, p := range model.partitions {
			p.epoch, p.counted, p.next, p.last = 0, 0, 0, schema.CountedRecord{}
		}
		model.check(t, to)
		model.checkReports(t, to, epoch.AddDate(0, 0, 2))
		for _, zone := range zones(t) {
			model.checkQuery(t, to, randomQuery(random, zone, clicks[random.IntN(len(clicks))]))
		}
	}
	model.insert(t, to, 1, randomClicks(random, 100, 6)...)
	model.set(t, to, HistoryOf(owner, randomLink, "moves", epoch, 5))
	model.remove(t, to, randomLink, "goes")
	move()
	model.check(t, to)
}
