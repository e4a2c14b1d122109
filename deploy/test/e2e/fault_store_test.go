//go:build engines && nightly

package e2e_test

import (
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"linkstream/schema/testkit"
)

// insertWithin is for how long ClickHouse accepts an insert after the worker has checked the position, and a little
// longer.
const insertWithin = 31 * time.Second

// startRestore copies the clicks in ClickHouse and takes the table away a little later, while ingest runs. restore
// puts the copy in its place. By then every insert has expired whose position was checked in the old table.
func (c *loadedCluster) startRestore(t *testing.T) (restore func()) {
	t.Helper()
	c.copyClicks(t)
	c.awaitRise(t, "ingest", counterCounted, 300)
	c.execClickHouse(t, "RENAME TABLE clicks TO clicks_taken")
	taken := time.Now()
	return func() {
		t.Helper()
		<-time.After(time.Until(taken.Add(insertWithin)))
		c.execClickHouse(t, "RENAME TABLE clicks_copy TO clicks", "DROP TABLE clicks_taken")
	}
}

// restoreStopped sets the clicks in ClickHouse back to an earlier moment, as deploy/manual/backup.md says: while
// ingest is stopped.
func (c *loadedCluster) restoreStopped(t *testing.T) {
	t.Helper()
	c.copyClicks(t)
	c.awaitRise(t, "ingest", counterCounted, 300)
	for _, p := range c.all("ingest") {
		p.awaitReady(t)
		c.lost += c.losses(t, p)
		p.stop(t)
	}
	c.execClickHouse(t, "EXCHANGE TABLES clicks AND clicks_copy", "DROP TABLE clicks_copy")
	for _, p := range c.all("ingest") {
		p.launch(t)
	}
}

// copyClicks copies the table of clicks as it is now.
func (c *loadedCluster) copyClicks(t *testing.T) {
	t.Helper()
	c.execClickHouse(t, "CREATE TABLE clicks_copy AS clicks", "ALTER TABLE clicks_copy ATTACH PARTITION ALL FROM clicks")
}

func (c *loadedCluster) execClickHouse(t *testing.T, statements ...string) {
	t.Helper()
	conn := c.openClickHouse(t)
	defer testkit.Close(t, conn)
	for _, statement := range statements {
		testkit.Must(t, conn.Exec(t.Context(), statement))
	}
}

func (c *loadedCluster) openClickHouse(t *testing.T) driver.Conn {
	t.Helper()
	options, err := clickhouse.ParseDSN(c.setting("LINKSTREAM_CLICKHOUSE_DSN"))
	testkit.Must(t, err)
	conn, err := clickhouse.Open(options)
	testkit.Must(t, err)
	return conn
}
