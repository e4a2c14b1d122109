# Counts the clicks of each link that a topic has: consumer.py BROKERS TOPIC. It needs kafka-python and zstandard.
import collections, json, sys
import kafka


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at


def decode(data):
    """Returns the fields of a protobuf message by their numbers."""
    click, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:  # bytes, or 8 or 4 bytes of a number
            size, at = {1: (8, at), 5: (4, at)}.get(key & 7) or varint(data, at)
            value, at = data[at:at + size], at + size
        click[key >> 3] = value
    return click


consumer = kafka.KafkaConsumer(bootstrap_servers=sys.argv[1].split(","), enable_auto_commit=False)
partitions = [kafka.TopicPartition(sys.argv[2], n) for n in consumer.partitions_for_topic(sys.argv[2])]
consumer.assign(partitions)
consumer.seek_to_beginning(*partitions)
ends, marks, clicks = consumer.end_offsets(partitions), {}, collections.Counter()
while any(consumer.position(p) < ends[p] for p in partitions):
    for partition, records in consumer.poll(1000).items():
        for record in records:
            click = decode(record.value)
            lane = partition.partition, click[1], click.get(2, 0)  # a number that is 0 is left out
            if click[3] > marks.get(lane, 0):
                marks[lane] = click[3]
                clicks[click[4]] += 1
print(json.dumps(clicks))
