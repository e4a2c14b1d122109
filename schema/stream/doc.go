// Package stream is the client of the click log. It creates the topics, produces and fetches record batches, joins the
// consumer group and measures lag, all on kafka-go. Any broker that speaks Kafka's protocol serves: Kafka, Redpanda or
// the broker of tests.
//
// # Topics
//
//	clicks       click events, produced by edges, consumed by the ingest workers' consumer group
//	clicks.dead  values from clicks that do not decode as a click event (the dead letter topic)
//	changes      keys of links and domains that caches must drop; compacted, read by every node from its end
//
// # Record batches
//
// A producer sends one record batch per request, version 2 of Kafka's message format
// (https://kafka.apache.org/documentation/#recordbatch), preceded by its size. All integers are big-endian:
//
//	offset  size  field
//	     0     4  size of the rest, part of the produce request
//	     4     8  baseOffset            0; the broker assigns it
//	    12     4  batchLength           size of the bytes behind this field
//	    16     4  partitionLeaderEpoch  0; the broker assigns it
//	    20     1  magic                 2
//	    21     4  crc                   CRC-32C of the bytes behind this field
//	    25     2  attributes            bits 0 to 2: compression codec
//	    27     4  lastOffsetDelta       records - 1
//	    31     8  baseTimestamp         Batch.Time in milliseconds
//	    39     8  maxTimestamp          the same
//	    47    14  producerId, producerEpoch, baseSequence: -1, the producer is not idempotent
//	    61     4  records count
//	    65        records, compressed together
//
// Each record, with its numbers as zigzag varints:
//
//	length | attributes 0 | timestampDelta 0 | offsetDelta | keyLength -1 | valueLength | value | headers count 0
//
// A producer that repeats a batch sends the same bytes again, so the broker may append it twice. Consumers drop the
// repetition by the click's lane and sequence number.
package stream
