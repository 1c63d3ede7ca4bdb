// kafka-node, driven by lines: node kafka_node.js ADDRESS
//
// Snappy would be a package that is built by a compiler of its time.
'use strict'

const readline = require('node:readline')
const { promisify } = require('node:util')
const kafka = require('kafka-node')

const DEADLINE_MS = 50_000
const CHUNK_RECORDS = 500
const FETCH_BYTES = 4 << 20
const ATTRIBUTES = { none: 0, gzip: 1 }

const address = process.argv[process.argv.length - 1]
const client = new kafka.KafkaClient({ kafkaHost: address, requestTimeout: 10_000 })
const offsets = new kafka.Offset(client)
const ready = new Promise((resolve, reject) => {
  client.on('ready', resolve)
  client.on('error', reject)
})

async function knowing(topic) {
  await ready
  await promisify(client.refreshMetadata).call(client, [topic])
}

async function produce(topic, records, options) {
  await knowing(topic)
  const count = Object.keys(client.topicMetadata[topic]).length
  const acks = options.acks === 'all' ? -1 : Number(options.acks)
  const producer = new kafka.HighLevelProducer(client, { requireAcks: acks, ackTimeoutMs: 10_000 })
  const send = promisify(producer.send).bind(producer)
  const byPartition = new Map()
  for (const record of records) {
    const own = record.partition < 0 ? hash(record.key) % count : record.partition
    byPartition.set(own, [...(byPartition.get(own) || []), record])
  }
  for (const [partition, some] of byPartition) {
    for (let at = 0; at < some.length; at += CHUNK_RECORDS) {
      const messages = some
        .slice(at, at + CHUNK_RECORDS)
        .map(record => new kafka.KeyedMessage(record.key, record.value))
      await send([{ topic, partition, messages, attributes: ATTRIBUTES[options.codec] }])
    }
  }
}

const hash = key => (key || []).reduce((sum, byte) => (sum * 31 + byte) >>> 0, 0)

async function boundsOf(topic, partition) {
  await knowing(topic)
  const fetch = promisify(offsets.fetch).bind(offsets)
  const place = Number(partition)
  const at = async time => (await fetch([{ topic, partition: place, time, maxNum: 1 }]))[topic][place][0]
  return { first: await at(-2), end: await at(-1) }
}

async function bounds(topic, partition) {
  const { first, end } = await boundsOf(topic, partition)
  return [`${first}\t${end}`]
}

async function read(topic, partition, start) {
  const { first, end } = await boundsOf(topic, partition)
  const offset = Math.max(first, Number(start))
  if (offset >= end) return []
  const place = { topic, partition: Number(partition), offset }
  const consumer = new kafka.Consumer(client, [place], {
    autoCommit: false,
    fromOffset: true,
    fetchMaxWaitMs: 100,
    fetchMaxBytes: FETCH_BYTES,
    encoding: 'buffer',
    keyEncoding: 'buffer',
  })
  try {
    return await new Promise((resolve, reject) => {
      const lines = []
      const timer = setTimeout(() => reject(new Error(`only ${lines.length} came`)), DEADLINE_MS)
      consumer.on('error', reject)
      consumer.on('message', message => {
        if (message.offset < offset || message.offset >= end) return
        const text = [encode(message.key), encode(message.value)].join('\t')
        lines.push(`${partition}\t${message.offset}\t-\t${text}\t`)
        if (message.offset + 1 < end) return
        clearTimeout(timer)
        resolve(lines)
      })
    })
  } finally {
    await new Promise(resolve => consumer.pause() || resolve())
    consumer.removeAllListeners('message')
  }
}

const encode = data => (data === null || data === undefined ? '-' : Buffer.from(data).toString('base64'))
const decode = text => (text === '-' ? null : Buffer.from(text, 'base64'))

function record(line) {
  const [partition, , , key, value] = line.split('\t')
  return { partition: Number(partition), key: decode(key), value: decode(value) }
}

const pairs = words => Object.fromEntries(words.map(word => word.split(/=(.*)/s).slice(0, 2)))

async function serve() {
  const commands = { read, bounds }
  const input = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]()
  const next = async () => (await input.next()).value
  for (let line = await next(); line !== undefined; line = await next()) {
    const [command, ...words] = line.split('\t')
    try {
      let answer = []
      if (command === 'produce') {
        const [topic, count, ...options] = words
        const records = []
        for (let i = 0; i < Number(count); i++) records.push(record(await next()))
        await produce(topic, records, pairs(options))
      } else {
        answer = await commands[command](...words)
      }
      process.stdout.write(answer.map(one => `= ${one}\n`).join('') + 'ok\n')
    } catch (failure) {
      const text = String(failure && failure.message ? failure.message : failure)
      process.stdout.write(`error\t-1\t${text.split(/\s+/).join(' ')}\n`)
    }
  }
  process.exit(0)
}

serve()
