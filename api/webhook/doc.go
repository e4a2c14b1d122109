// Package webhook sends the events of an account's links and domains to other programs, as Standard Webhooks
// (https://www.standardwebhooks.com).
//
//	change of a link ─trigger, same transaction─▶ webhook_deliveries ─claim─▶ Sender ─POST─▶ receiver
//	click ─schema.ClickHookStore, with marks──────▶
//
// A delivery is in the link store once the change is, and keeps its random webhook-id over all attempts: a receiver
// that remembers the IDs gets each event exactly once, after a kill of any process. Deliveries of one webhook are sent
// in their order, one at a time, so a failure delays the deliveries behind it. Another webhook never waits for it,
// because each has a goroutine of its own.
//
// Any number of processes send. A process claims webhooks that have something to send under a lease, which each noted
// outcome extends. A process that is killed or suspended loses its lease, and the next one repeats at most the delivery
// under way, with the same ID.
//
// A failed delivery is repeated after growing pauses, or later if the receiver asks by Retry-After. The answer 410
// switches the webhook off, and so does failing for three days. The store bounds the deliveries that wait, and counts
// those that it drops.
//
// A sender connects to public addresses and to networks that the operator allows, but never to the service's own
// addresses. It checks the address of the connection, so a name cannot evade the check by changing its addresses after
// a look-up. It follows no redirect.
//
// # Limits
//
//   - While an account has a webhook, changes of its links wait for each other, as new links do anyway.
//   - After a restore of Postgres, deliveries are sent again with the same IDs, but clicks after the backup in new
//     deliveries, with the same IDs of clicks.
//   - Clicks of the minute before a webhook subscribed to clicks may be sent, so that edges' clocks may be wrong by a
//     minute.
//   - On one machine a power failure may take clicks of the last -spool.sync that are counted and not queued yet.
//   - Clicks are read from the topic only while a webhook subscribes to them. The first webhook of an old log gets
//     nothing until apis have read the log.
package webhook
