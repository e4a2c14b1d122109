//go:build engines

package e2e_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"linkstream/api/auth"
	"linkstream/api/webhook"
	"linkstream/schema"
	"linkstream/schema/linkstore"
	linksqlite "linkstream/schema/linkstore/sqlite"
	"linkstream/schema/sqlite"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// filledDays is the number of days for which a filled system has clicks.
const filledDays = 75

// filledLinks are the links of a filled system, oldest first. clicks is the approximate number per weekday.
var filledLinks = []struct {
	alias, url string
	own        bool // on the account's custom domain
	age        int  // days
	clicks     float64
}{
	{"handbook", "https://docs.example.org/handbook/introduction", false, 74, 21},
	{"newsletter", "https://www.example.org/newsletter?utm_source=footer&utm_medium=link", false, 70, 34},
	{"hiring", "https://www.example.org/careers/open-positions", true, 63, 12},
	{"podcast-12", "https://media.example.net/podcast/12-how-we-count", false, 55, 18},
	{"status", "https://status.example.org/", true, 52, 6},
	{"autumn-sale", "https://shop.example.com/collections/autumn?discount=leaves&utm_campaign=autumn-sale", false, 44, 96},
	{"go-doc", "https://go.dev/doc/", false, 38, 9},
	{"x7Kq2Lm", "https://maps.example.net/place/riverside-hall,entrance-b/@48.2,16.4,17z", false, 31, 3},
	{"meetup", "https://events.example.org/2026/november/meetup-streaming-analytics", true, 24, 42},
	{"slides", "https://files.example.org/talks/2026/exactly-once-in-practice.pdf", true, 17, 27},
	{"launch", "https://www.example.org/blog/announcing-linkstream", false, 13, 260},
	{"survey", "https://forms.example.net/s/what-do-you-count?source=launch", false, 9, 31},
	{"Rt9bWz1", "https://www.example.org/invoices/2026-11/a-path-that-goes-on-and-on/and-a-file.html", false, 4, 1},
	{"black-friday", "https://shop.example.com/collections/black-friday", false, 2, 55},
}

// filledTitles and filledTags are the titles and tags of links that have any, by alias.
var (
	filledTitles = map[string]string{"launch": "Announcement of the first release",
		"podcast-12": "Podcast 12: How we count", "black-friday": "Black Friday"}
	filledTags = map[string][]string{"launch": {"blog", "release"}, "newsletter": {"newsletter"},
		"autumn-sale": {"newsletter", "shop"}, "black-friday": {"newsletter", "shop"}}
)

// share is a name and the percentage of clicks that have it.
type share struct {
	name    string
	percent float64
}

var (
	filledBrowsers = map[schema.Device][]share{
		schema.Desktop: {{"Chrome", 58}, {"Firefox", 19}, {"Edge", 12}, {"Safari", 11}},
		schema.Mobile:  {{"Safari", 46}, {"Chrome", 41}, {"Samsung Browser", 9}, {"Firefox", 4}},
		schema.Tablet:  {{"Safari", 78}, {"Chrome", 22}},
		schema.Bot:     {{"Googlebot", 52}, {"bingbot", 30}, {"facebookexternalhit", 18}},
		schema.Other:   {{"curl", 100}},
	}
	filledDevices = []share{{string(schema.Mobile), 47}, {string(schema.Desktop), 38}, {string(schema.Bot), 9},
		{string(schema.Tablet), 4}, {string(schema.Other), 2}}
	filledReferrers = []share{{"", 38}, {"news.ycombinator.com", 17}, {"www.linkedin.com", 13}, {"www.google.com", 12},
		{"github.com", 8}, {"www.reddit.com", 6}, {"mail.example.org", 4}, {"t.co", 2}}
	filledCampaigns = map[string]string{"www.linkedin.com": "linkedin / social / launch",
		"mail.example.org": "newsletter / email / launch", "www.reddit.com": "newsletter / email / autumn"}
	filledCountries = []share{{"DE", 27}, {"US", 22}, {"AT", 13}, {"FR", 9}, {"GB", 8}, {"NL", 6}, {"IN", 5}, {"BR", 4},
		{"JP", 3}, {"", 2}, {"SE", 1}}
	filledSystems   = []share{{"iOS", 30}, {"Android", 26}, {"Windows", 24}, {"macOS", 12}, {"Linux", 6}, {"Other", 2}}
	filledLanguages = []share{{"de", 38}, {"en", 36}, {"fr", 9}, {"nl", 6}, {"pt", 4}, {"ja", 3}, {"", 4}}
)

// The account of a filled system.
const filledEmail, filledPassword = "maria@example.org", "as long as passwords are"

// filled is the data of filled systems. The first test that needs it writes it.
var filled struct {
	once  sync.Once
	files map[string][]byte // by name
}

// filledSystem starts a system that looks as if people had used it for some months.
func filledSystem(t *testing.T) *system {
	t.Helper()
	filled.once.Do(func() { fill(t) })
	if len(filled.files) == 0 {
		t.Fatal("another test could not write the data")
	}
	s := newStandalone(t, "LINKSTREAM_EDGE_URL=https://sho.example")
	s.email, s.password = filledEmail, filledPassword
	testkit.Must(t, os.MkdirAll(s.data, 0o700))
	for name, content := range filled.files {
		testkit.Must(t, os.WriteFile(filepath.Join(s.data, name), content, 0o600))
	}
	s.start(t)
	return s
}

// fill writes the data of filled systems to stores and reads their files.
func fill(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	store, err := linksqlite.Open(t.Context(), filepath.Join(dir, "links.db"))
	testkit.Must(t, err)
	counts, err := sqlite.OpenClickStore(t.Context(), filepath.Join(dir, "clicks.db"))
	testkit.Must(t, err)
	f := &filler{t: t, random: rand.New(rand.NewPCG(20, 26)), now: time.Now().UTC().Truncate(time.Second)}
	f.batch.Reset(0, 0)
	f.batch.Time = f.now
	f.account(store)
	f.webhook(store)
	for _, link := range f.links(store) {
		f.clicks(link)
	}
	f.must(counts.InsertClicks(t.Context(), storetest.NoNames(&f.batch)))
	f.must(counts.Close())
	f.must(store.Close())
	files := map[string][]byte{}
	for _, name := range []string{"links.db", "clicks.db"} {
		files[name], err = os.ReadFile(filepath.Join(dir, name))
		testkit.Must(t, err)
	}
	filled.files = files
}

// filler fills a system. The data is the same each time, except that it ends today.
type filler struct {
	t      *testing.T
	random *rand.Rand
	now    time.Time
	owner  schema.Account
	domain schema.Domain // verified
	batch  schema.ClickBatch
}

func (f *filler) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// before returns the time so many days and hours ago.
func (f *filler) before(days, hours int) time.Time {
	return f.now.Add(-time.Duration(24*days+hours) * time.Hour)
}

// account creates the account with tokens, sessions and domains.
func (f *filler) account(store *linkstore.Store) {
	ctx := f.t.Context()
	f.owner = schema.Account{Email: filledEmail, PasswordHash: auth.HashPassword(filledPassword),
		CreatedAt: f.before(filledDays, 3)}
	f.must(store.CreateAccount(ctx, &f.owner))
	used := map[int64]time.Time{}
	for i, name := range []string{"Website", "Newsletter script", "Maria’s laptop"} {
		_, token := auth.NewToken(f.owner.ID, name)
		token.CreatedAt = f.before(60-25*i, 5*i)
		f.must(store.CreateToken(ctx, &token))
		if i < 2 {
			used[token.ID] = f.before(9*i, 1)
		}
	}
	f.must(store.UseTokens(ctx, used))
	for i, agent := range []string{
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:145.0) Gecko/20100101 Firefox/145.0",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 " +
			"Mobile/15E148 Safari/604.1",
	} {
		f.must(store.CreateSession(ctx, &schema.Session{AccountID: f.owner.ID, Digest: [32]byte{byte(i)}, UserAgent: agent,
			CreatedAt: f.before(3*i+2, 4), SeenAt: f.before(0, 5*i+2), ExpiresAt: f.before(-20, 0)}, f.owner.PasswordHash))
	}
	for i, host := range []string{"go.example.org", "links.xn--bcher-kva.example"} {
		domain := schema.Domain{AccountID: f.owner.ID, Host: host,
			Challenge: fmt.Sprintf("linkstream-verify=%016x%016x", f.random.Uint64(), f.random.Uint64()),
			CreatedAt: f.before(66-60*i, 2)}
		f.must(store.CreateDomain(ctx, &domain))
		if i == 0 {
			f.must(store.VerifyDomain(ctx, domain.ID, f.before(65, 20)))
			f.domain = domain
		}
	}
}

// webhook creates a webhook that two deliveries were sent to.
func (f *filler) webhook(store *linkstore.Store) {
	ctx := f.t.Context()
	hook := schema.Webhook{AccountID: f.owner.ID, URL: "https://hooks.example.org/" + strings.Repeat("services/", 20),
		Events: []string{schema.EventDomainChanged, schema.EventLinkDeleted}, Active: true, PeopleOnly: true,
		Secret: webhook.NewSecret(), CreatedAt: f.before(40, 1), UpdatedAt: f.before(40, 1)}
	f.must(store.CreateWebhook(ctx, &hook))
	for range 2 {
		f.must(store.TestWebhook(ctx, f.owner.ID, hook.ID))
		waiting, err := store.WaitingDeliveries(ctx, f.owner.ID, hook.ID, 1)
		f.must(err)
		for _, note := range []schema.DeliveryNote{{Error: "The receiver could not be reached."}, {Delivered: true,
			Answer: schema.Answer{Status: 204, Took: 87 * time.Millisecond, Text: strings.Repeat("accepted", 99)}}} {
			_, err = store.NoteDelivery(ctx, f.owner.ID, hook.ID, "", waiting[0], note)
			f.must(err)
		}
	}
}

// filledLink is a link and the approximate number of its clicks per weekday.
type filledLink struct {
	schema.Link
	clicks float64
}

func (f *filler) links(store *linkstore.Store) (links []filledLink) {
	for _, l := range filledLinks {
		link := schema.Link{AccountID: f.owner.ID, Hash: l.alias, URL: l.url, Active: true, CreatedAt: f.before(l.age, 7),
			Title: filledTitles[l.alias], Tags: filledTags[l.alias]}
		if l.own {
			link.DomainID = f.domain.ID
		}
		f.must(store.CreateLink(f.t.Context(), &link))
		links = append(links, filledLink{link, l.clicks})
	}
	storetest.SetActive(f.t, store, 0, "autumn-sale", false)
	return links
}

// clicks adds the clicks on a link: more while it is new, fewer at weekends, most of them before the present hour, so
// that today has some.
func (f *filler) clicks(link filledLink) {
	busiest := min(14, float64(f.now.Hour())-4)
	for day := link.CreatedAt.Truncate(24 * time.Hour); day.Before(f.now); day = day.AddDate(0, 0, 1) {
		age := day.Sub(link.CreatedAt).Hours() / 24
		want := link.clicks * (0.45 + 1.3*math.Exp(-max(age, 0)/6)) * (0.75 + f.random.Float64()/2)
		if weekday := day.Weekday(); weekday == time.Saturday || weekday == time.Sunday {
			want *= 0.42
		}
		for range int(want) {
			hour := max(0, min(23.99, busiest+4.5*f.random.NormFloat64()))
			at := day.Add(time.Duration(hour * float64(time.Hour))).Truncate(time.Millisecond)
			if at.After(link.CreatedAt) && at.Before(f.now) {
				f.click(link.ID, at)
			}
		}
	}
}

// click adds one click to the batch.
func (f *filler) click(linkID int64, at time.Time) {
	b, device := &f.batch, schema.Device(f.one(filledDevices))
	b.Offset = append(b.Offset, b.Next)
	b.Next++
	b.Lane = append(b.Lane, schema.Lane{Number: 1})
	b.Seq = append(b.Seq, uint64(b.Next))
	b.LinkID = append(b.LinkID, linkID)
	b.AccountID = append(b.AccountID, f.owner.ID)
	b.ClickedAt = append(b.ClickedAt, at)
	b.Device = append(b.Device, device)
	b.Browser = append(b.Browser, f.one(filledBrowsers[device]))
	b.Referrer = append(b.Referrer, f.one(filledReferrers))
	b.Country = append(b.Country, f.one(filledCountries))
	b.Campaign = append(b.Campaign, filledCampaigns[b.Referrer[len(b.Referrer)-1]])
	b.OS, b.Language = append(b.OS, f.one(filledSystems)), append(b.Language, f.one(filledLanguages))
}

// one returns a random name, distributed as the shares say.
func (f *filler) one(shares []share) string {
	at := 100 * f.random.Float64()
	for _, p := range shares {
		if at -= p.percent; at < 0 {
			return p.name
		}
	}
	return shares[0].name
}
