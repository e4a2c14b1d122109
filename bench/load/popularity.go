package load

import "math/rand/v2"

// Popularity draws links as visitors choose them: by Zipf's law, so that a few get most of the clicks, and most get
// few. It belongs to one goroutine.
type Popularity struct {
	zipf  *rand.Zipf
	links uint64
}

const (
	// The exponent of popularity on the web is around 1 (Adamic and Huberman, "Zipf's law and the Internet", 2002); the
	// offset flattens the top, so that the most popular of a million links gets two in a hundred clicks.
	zipfExponent = 1.1
	zipfOffset   = 10
	// scatter takes a rank to a link. It is a prime above any number of links, so that each rank has a link of its own,
	// and popular links stand anywhere among the others.
	scatter = 1<<31 - 1
)

// NewPopularity returns the popularity of links 0 to links-1. The same seed draws the same links.
func NewPopularity(links int, seed uint64) *Popularity {
	random := rand.New(rand.NewPCG(seed, uint64(links)))
	return &Popularity{zipf: rand.NewZipf(random, zipfExponent, zipfOffset, uint64(links-1)), links: uint64(links)}
}

// Next returns the link of the next visitor.
func (p *Popularity) Next() int { return p.Link(p.zipf.Uint64()) }

// Link returns the link of a rank: 0 is the most popular.
func (p *Popularity) Link(rank uint64) int { return int(rank % p.links * scatter % p.links) }
