"""A producer and a reader of librdkafka with the client's own settings, as ../README.md describes them."""

import sys
import threading

import confluent_kafka as ck

saying = threading.Lock()
ending = threading.Event()


def say(*words: object) -> None:
    with saying:
        print(*words, flush=True)


def read(addresses: str, topic: str, partitions: int) -> None:
    # It must be of a group, which it does not use.
    consumer = ck.Consumer({"bootstrap.servers": addresses, "group.id": f"{topic}-readers"})
    consumer.assign([ck.TopicPartition(topic, n, ck.OFFSET_BEGINNING) for n in range(partitions)])
    while not ending.is_set():
        message = consumer.poll(0.1)
        if message is None:
            continue
        if message.error() is None:
            say("read", message.value().decode(), message.partition(), message.offset())
        elif message.error().fatal():
            say("failed", -1, message.error().str())
    consumer.close()


def note_of(number: str):
    def note(error, message) -> None:
        if error is None:
            say("acknowledged", number, message.partition(), message.offset())
        else:
            say("failed", number, error.str())

    return note


def listen(producer: ck.Producer) -> None:
    while not ending.is_set():
        producer.poll(0.1)


def main() -> None:
    addresses, topic, partitions = sys.argv[1], sys.argv[2], int(sys.argv[3])
    producer = ck.Producer({"bootstrap.servers": addresses})
    reader = threading.Thread(target=read, args=(addresses, topic, partitions))
    listener = threading.Thread(target=listen, args=(producer,))
    for thread in (reader, listener):
        thread.start()
    for line in sys.stdin:
        number, key = line.split()
        producer.produce(topic, number, key, on_delivery=note_of(number))
    producer.flush()
    ending.set()
    for thread in (reader, listener):
        thread.join()


main()
