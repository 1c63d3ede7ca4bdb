// A producer and a reader of kafkajs with the client's own settings, as ../README.md describes them.
'use strict'

const readline = require('node:readline')
const { Kafka, Partitioners, logLevel } = require('kafkajs')

const [addresses, topic, partitions] = process.argv.slice(2)
const kafka = new Kafka({ brokers: addresses.split(','), logLevel: logLevel.NOTHING })
const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner })
const consumer = kafka.consumer({ groupId: `${topic}-readers` })
const say = (...words) => process.stdout.write(words.join(' ') + '\n')

// A number always goes to the same partition, so that its offset is known from the answer.
const partitionOf = key => Number(key.replace(/\D/g, '')) % Number(partitions)

async function send(lines) {
  const byPartition = new Map()
  for (const [value, key] of lines) {
    const partition = partitionOf(key)
    if (!byPartition.has(partition)) byPartition.set(partition, [])
    byPartition.get(partition).push({ key, value, partition })
  }
  for (const [partition, messages] of byPartition) {
    try {
      const [{ baseOffset }] = await producer.send({ topic, messages })
      messages.forEach(({ value }, at) => {
        say('acknowledged', value, partition, Number(baseOffset) + at)
      })
    } catch (failure) {
      messages.forEach(({ value }) => say('failed', value, failure.message))
    }
  }
}

async function main() {
  await producer.connect()
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  await consumer.run({
    eachMessage: async ({ partition, message }) => {
      say('read', message.value.toString(), partition, message.offset)
    },
  })
  let waiting = []
  let ended = false
  let wake = () => {}
  const input = readline.createInterface({ input: process.stdin })
  input.on('line', line => {
    waiting.push(line.split(' '))
    wake()
  })
  input.on('close', () => {
    ended = true
    wake()
  })
  while (!ended || waiting.length > 0) {
    if (waiting.length === 0) await new Promise(resolve => (wake = resolve))
    const lines = waiting
    waiting = []
    await send(lines)
  }
  await producer.disconnect()
  await consumer.disconnect()
}

main().then(() => process.exit(0))
