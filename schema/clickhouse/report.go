package clickhouse

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"golang.org/x/sync/errgroup"

	"linkstream/schema"
)

const (
	// Three queries at the same time, each with its projection. A server plans one query of all three for longer than it reads a link's
	// rows. The store adds up names and days. The referrers have the total of all of them, for a link may have a thousand per day.
	linkDays = `
	SELECT toDate(clicked_at) AS day, device, browser, sum(weight)
	FROM clicks WHERE link_id = ? AND toDate(clicked_at) >= ? GROUP BY day, device, browser`
	linkPlaces = `
	SELECT os, language, country, sumIf(weight, device != 'bot')
	FROM clicks WHERE link_id = ? AND toDate(clicked_at) >= ? GROUP BY os, language, country`
	linkReferrers = `
	SELECT *, sum(people) OVER ()
	FROM (
		SELECT toString(referrer) AS name, sumIf(weight, device != 'bot') AS people
		FROM clicks WHERE link_id = ? AND toDate(clicked_at) >= ? GROUP BY referrer
	)
	WHERE people > 0
	ORDER BY people DESC, name
	LIMIT ?`
	// The same by one query, each of whose parts has link and day as arguments.
	linkParts = `
		SELECT kind, key, if(device = 'bot', 0, clicks) AS people, if(device = 'bot', clicks, 0) AS bots
		FROM (
			SELECT toDate(clicked_at) AS day, device, browser, sum(weight) AS clicks
			FROM clicks WHERE link_id = ? AND toDate(clicked_at) >= ? GROUP BY day, device, browser
		)
		ARRAY JOIN ['day', 'device', 'browser'] AS kind, [toString(day), toString(device), toString(browser)] AS key
		UNION ALL
		SELECT 'referrer' AS kind, toString(referrer) AS key, sumIf(weight, device != 'bot') AS people, 0 AS bots
		FROM clicks WHERE link_id = ? AND toDate(clicked_at) >= ? GROUP BY referrer
		UNION ALL
		SELECT kind, key, clicks AS people, 0 AS bots
		FROM (
			SELECT os, language, country, sumIf(weight, device != 'bot') AS clicks
			FROM clicks WHERE link_id = ? AND toDate(clicked_at) >= ? GROUP BY os, language, country
		)
		ARRAY JOIN ['os', 'language', 'country'] AS kind, [toString(os), toString(language), toString(country)] AS key`
	// The same in one part, which reads rows.
	linkScan = `
		SELECT multiIf(grouping(day) = 0, 'day', grouping(device) = 0, 'device', grouping(browser) = 0, 'browser',
				grouping(os) = 0, 'os', grouping(language) = 0, 'language', grouping(referrer) = 0, 'referrer', 'country') AS kind,
			if(grouping(day) = 0, toString(day), concat(device, browser, os, language, referrer, country)) AS key,
			sumIf(weight, device != 'bot') AS people, sumIf(weight, device = 'bot') AS bots
		FROM clicks WHERE link_id = ? AND toDate(clicked_at) >= ?
		GROUP BY GROUPING SETS ((toDate(clicked_at) AS day), (device), (browser), (os), (language), (referrer), (country))`
	// With totals of each kind. The setting makes all projections be read from one snapshot, which only newer servers do by default.
	linkReport = `
	SELECT kind, key, sum(people) AS of_people, sum(bots) AS of_bots, sum(sum(people)) OVER (PARTITION BY kind)
	FROM (%s
	)
	GROUP BY kind, key
	HAVING of_people > 0 OR kind IN ('day', 'device')
	ORDER BY if(kind = 'day', 0, of_people) DESC, key
	LIMIT ? BY kind, if(kind IN ('day', 'device'), key, '')
	SETTINGS enable_shared_storage_snapshot_in_query = 1`
	// Two queries at the same time, each with its projection. The links have the total of all of them.
	accountDays = `
	SELECT toDate(toStartOfFifteenMinutes(clicked_at)) AS day, sumIf(weight, device != 'bot'), sumIf(weight, device = 'bot')
	FROM clicks WHERE account_id = ? AND toStartOfFifteenMinutes(clicked_at) >= toDateTime(?, 'UTC') GROUP BY day ORDER BY day`
	accountLinks = `
	SELECT *, sum(clicks) OVER ()
	FROM (
		SELECT link_id AS link, sumIf(weight, device != 'bot') + sumIf(weight, device = 'bot') AS clicks
		FROM clicks WHERE account_id = ? AND toDate(clicked_at) >= ? GROUP BY link_id
	)
	ORDER BY clicks DESC, link
	LIMIT ?`
	// The same by one query. The days come first, in order, and then the links with the most clicks.
	accountReport = `
	SELECT grouping(link) = 0 AS of_link, date, link, if(of_link, sumIf(people, recent), sum(people)) AS of_people,
		if(of_link, sumIf(bots, recent), sum(bots)) AS of_bots
	FROM (
		SELECT toDate(clicked_at) AS date, link_id AS link, date >= ? AS recent, sumIf(weight, device != 'bot') AS people,
			sumIf(weight, device = 'bot') AS bots
		FROM clicks WHERE account_id = ? AND toDate(clicked_at) >= ? GROUP BY date, link
	)
	GROUP BY GROUPING SETS ((date), (link))
	HAVING of_people + of_bots > 0
	ORDER BY of_link, date, of_people + of_bots DESC, link
	LIMIT ? BY of_link, date`
)

// LinkReport implements schema.ReportStore. See Report for how its parts are of one moment.
func (c *ClickStore) LinkReport(ctx context.Context, linkID int64, since time.Time) (report schema.LinkReport, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	day, consistent := dateOf(since), false
	for reads := 0; reads < maxReads && err == nil && !consistent; reads++ {
		report, consistent, err = c.readLinkReport(ctx, linkID, day)
	}
	if err == nil && !consistent {
		parts, args := linkParts, []any{linkID, day, linkID, day, linkID, day, schema.TopNames}
		if c.layout.Cluster != "" {
			parts, args = linkScan, []any{linkID, day, schema.TopNames}
		}
		report, _, err = c.joinedLinkReport(ctx, parts, args...)
	}
	return report, wrap(err, "read report of link %d", linkID)
}

// readLinkReport reports whether all kinds have as many clicks by people.
func (c *ClickStore) readLinkReport(ctx context.Context, linkID int64, since string) (schema.LinkReport, bool, error) {
	var ofDays, ofPlaces, ofReferrers int64 // people
	report := schema.LinkReport{Devices: map[schema.Device]int64{}}
	days, browsers := map[time.Time]schema.Period{}, map[string]int64{}
	systems, languages, countries := map[string]int64{}, map[string]int64{}, map[string]int64{}
	reading, ctx := errgroup.WithContext(ctx)
	reading.Go(func() error {
		rows, err := c.conn.Query(ch.Context(ctx, ch.WithSettings(lookupSettings("weighted_counts"))), linkDays, linkID, since)
		return forEachRow(rows, err, func() error {
			var day time.Time
			var device, browser string
			var total uint64
			err := rows.Scan(&day, &device, &browser, &total)
			n, of := int64(total), days[day]
			if device == string(schema.Bot) {
				of.Bots += n
			} else {
				of.People += n
				browsers[browser] += n
				ofDays += n
			}
			days[day] = of
			report.Devices[schema.Device(device)] += n
			return err
		})
	})
	reading.Go(func() error {
		rows, err := c.conn.Query(ch.Context(ctx, ch.WithSettings(lookupSettings("link_places"))), linkPlaces, linkID, since)
		return forEachRow(rows, err, func() error {
			var os, language, country string
			var people uint64
			err := rows.Scan(&os, &language, &country, &people)
			n := int64(people)
			systems[os], languages[language], countries[country] = systems[os]+n, languages[language]+n, countries[country]+n
			ofPlaces += n
			return err
		})
	})
	reading.Go(func() error {
		settings := projectionSettings("link_referrers")
		rows, err := c.conn.Query(ch.Context(ctx, ch.WithSettings(settings)), linkReferrers, linkID, since, schema.TopNames)
		return forEachRow(rows, err, func() error {
			var name string
			var people, total uint64
			err := rows.Scan(&name, &people, &total)
			report.Referrers = append(report.Referrers, schema.NameCount{Name: name, Total: int64(people)})
			ofReferrers = int64(total)
			return err
		})
	})
	err := reading.Wait()
	for _, day := range slices.SortedFunc(maps.Keys(days), time.Time.Compare) {
		report.Days = append(report.Days, schema.DayReport{Date: day.Format(time.DateOnly), People: days[day].People, Bots: days[day].Bots})
	}
	report.Browsers, report.Systems = mostFrequent(browsers, schema.TopNames), mostFrequent(systems, schema.TopNames)
	report.Languages, report.Countries = mostFrequent(languages, schema.TopNames), mostFrequent(countries, schema.TopNames)
	return report, ofDays == ofPlaces && ofDays == ofReferrers, err
}

// joinedLinkReport reports whether all kinds have as many clicks.
func (c *ClickStore) joinedLinkReport(ctx context.Context, parts string, args ...any) (schema.LinkReport, bool, error) {
	report, totals := schema.LinkReport{Devices: map[schema.Device]int64{}}, map[uint64]bool{}
	rows, err := c.conn.Query(ctx, fmt.Sprintf(linkReport, parts), args...)
	err = forEachRow(rows, err, func() error {
		var kind, key string
		var people, bots, total uint64
		if err := rows.Scan(&kind, &key, &people, &bots, &total); err != nil {
			return err
		}
		totals[total] = true
		name := schema.NameCount{Name: key, Total: int64(people)}
		switch kind {
		case "day":
			report.Days = append(report.Days, schema.DayReport{Date: key, People: int64(people), Bots: int64(bots)})
		case "device":
			report.Devices[schema.Device(key)] = int64(people + bots)
		case "browser":
			report.Browsers = append(report.Browsers, name)
		case "os":
			report.Systems = append(report.Systems, name)
		case "language":
			report.Languages = append(report.Languages, name)
		case "referrer":
			report.Referrers = append(report.Referrers, name)
		case "country":
			report.Countries = append(report.Countries, name)
		}
		return nil
	})
	return report, len(totals) <= 1, err
}

// AccountReport implements schema.ReportStore. Both parts are of one moment if they have as many clicks since linksSince, as for Report.
func (c *ClickStore) AccountReport(ctx context.Context, accountID int64, since, linksSince time.Time) (report schema.AccountReport, err error) {
	if accountID == 0 { // not an account, but clicks on links without one
		return report, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	consistent := false
	for reads := 0; reads < maxReads && err == nil && !consistent; reads++ {
		report, consistent, err = c.readAccountReport(ctx, accountID, dateOf(since), dateOf(linksSince))
	}
	if err == nil && !consistent {
		report, err = c.joinedAccountReport(ctx, accountID, dateOf(since), dateOf(linksSince))
	}
	return report, wrap(err, "read report of account %d", accountID)
}

// AccountDays implements schema.ReportStore.
func (c *ClickStore) AccountDays(ctx context.Context, accountID int64, since time.Time) ([]schema.DayReport, error) {
	if accountID == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	days, err := c.readAccountDays(ctx, accountID, dateOf(since))
	return days, wrap(err, "read days of account %d", accountID)
}

func (c *ClickStore) readAccountDays(ctx context.Context, accountID int64, since string) (all []schema.DayReport, _ error) {
	ctx = ch.Context(ctx, ch.WithSettings(lookupSettings("account_quarters")))
	rows, err := c.conn.Query(ctx, accountDays, accountID, since+" 00:00:00")
	err = forEachRow(rows, err, func() error {
		var day time.Time
		var people, bots uint64
		err := rows.Scan(&day, &people, &bots)
		all = append(all, schema.DayReport{Date: day.Format(time.DateOnly), People: int64(people), Bots: int64(bots)})
		return err
	})
	return all, err
}

// readAccountReport reports whether its parts have as many clicks.
func (c *ClickStore) readAccountReport(ctx context.Context, accountID int64, since, linksSince string) (schema.AccountReport, bool, error) {
	var report schema.AccountReport
	var total uint64
	reading, ctx := errgroup.WithContext(ctx)
	reading.Go(func() (err error) {
		report.Days, err = c.readAccountDays(ctx, accountID, since)
		return err
	})
	reading.Go(func() error {
		settings := projectionSettings("weighted_accounts") // an account may have a million links
		rows, err := c.conn.Query(ch.Context(ctx, ch.WithSettings(settings)), accountLinks, accountID, linksSince, schema.TopNames)
		return forEachRow(rows, err, func() error {
			var link schema.LinkCount
			var clicks uint64
			err := rows.Scan(&link.LinkID, &clicks, &total)
			link.Total = int64(clicks)
			report.Links = append(report.Links, link)
			return err
		})
	})
	err := reading.Wait()
	var recent int64
	for _, day := range report.Days {
		if day.Date >= linksSince {
			recent += day.People + day.Bots
		}
	}
	return report, uint64(recent) == total, err
}

func (c *ClickStore) joinedAccountReport(ctx context.Context, accountID int64, since, linksSince string) (report schema.AccountReport, _ error) {
	rows, err := c.conn.Query(ctx, accountReport, linksSince, accountID, since, schema.TopNames)
	err = forEachRow(rows, err, func() error {
		var ofLink bool
		var day time.Time
		var link int64
		var people, bots uint64
		if err := rows.Scan(&ofLink, &day, &link, &people, &bots); err != nil {
			return err
		}
		if ofLink {
			report.Links = append(report.Links, schema.LinkCount{LinkID: link, Total: int64(people + bots)})
			return nil
		}
		of := schema.DayReport{Date: day.Format(time.DateOnly), People: int64(people), Bots: int64(bots)}
		report.Days = append(report.Days, of)
		return nil
	})
	return report, err
}

// dateOf returns the UTC date of t, or 1970-01-01, the first one that the type Date of ClickHouse has.
func dateOf(t time.Time) string {
	if t.Unix() < 0 {
		t = time.Unix(0, 0)
	}
	return t.UTC().Format(time.DateOnly)
}
