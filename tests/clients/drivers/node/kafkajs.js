// kafkajs, driven by lines: node kafkajs.js ADDRESS
//
// Its consumer knows groups only. Here records are fetched by the layer below, which is what its
// consumer fetches with: requests, decoding and decompression are the library's.
'use strict'

const readline = require('node:readline')
const { Kafka, CompressionTypes, ConfigResourceTypes, Partitioners, logLevel } = require('kafkajs')
const Cluster = require('kafkajs/src/cluster')
const { createLogger } = require('kafkajs/src/loggers')
const consoleLog = require('kafkajs/src/loggers/console')
const socketFactory = require('kafkajs/src/network/socketFactory')

const DEADLINE_MS = 50_000
const CHUNK_RECORDS = 1000
const UNKNOWN_TOPIC = 3
const TOPIC_EXISTS = 36

const address = process.argv[process.argv.length - 1]
const retry = { initialRetryTime: 50, retries: 5 }
const kafka = new Kafka({ brokers: [address], logLevel: logLevel.NOTHING, retry })
const admin = kafka.admin()

class Failure extends Error {
  constructor(code, text) {
    super(text)
    this.code = code
  }
}

// --- Topics and settings ---

async function create(topic, partitions, ...config) {
  const configEntries = Object.entries(pairs(config)).map(([name, value]) => ({ name, value }))
  const wanted = { topic, numPartitions: Number(partitions), replicationFactor: 1, configEntries }
  if (!(await admin.createTopics({ topics: [wanted], waitForLeaders: false }))) {
    throw new Failure(TOPIC_EXISTS, `${topic} exists`)
  }
}

const remove = topic => admin.deleteTopics({ topics: [topic] })
const list = () => admin.listTopics()

async function partitions(topic) {
  const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
  return [topics[0].partitions.length]
}

async function grow(topic, count) {
  await admin.createPartitions({ topicPartitions: [{ topic, count: Number(count) }] })
}

async function trim(topic, partition, offset) {
  const asked = [{ partition: Number(partition), offset }]
  await admin.deleteTopicRecords({ topic, partitions: asked })
  return [(await boundsOf(topic, partition)).low]
}

async function describe(kind, name) {
  const type = kind === 'topic' ? ConfigResourceTypes.TOPIC : ConfigResourceTypes.BROKER
  const { resources } = await admin.describeConfigs({
    resources: [{ type, name }],
    includeSynonyms: true,
  })
  return resources[0].configEntries.map(entry => {
    const synonyms = entry.configSynonyms.map(
      other => `${other.configName}:${encode(other.configValue)}:${other.configSource}`
    )
    const value = encode(entry.configValue)
    return [entry.configName, value, entry.configSource, entry.readOnly, synonyms].join('\t')
  })
}

async function alter(topic, ...config) {
  const configEntries = Object.entries(pairs(config)).map(([name, value]) => ({ name, value }))
  const resource = { type: ConfigResourceTypes.TOPIC, name: topic, configEntries }
  await admin.alterConfigs({ resources: [resource] })
}

// --- Records ---

async function produce(topic, records, options) {
  const producer = kafka.producer({
    createPartitioner: Partitioners.DefaultPartitioner,
    idempotent: options.idempotent === 'true',
  })
  const sending = {
    topic,
    acks: options.acks === 'all' ? -1 : Number(options.acks),
    compression: options.codec === 'gzip' ? CompressionTypes.GZIP : CompressionTypes.None,
  }
  await producer.connect()
  try {
    for (let at = 0; at < records.length; at += CHUNK_RECORDS) {
      await producer.send({ ...sending, messages: records.slice(at, at + CHUNK_RECORDS) })
    }
  } finally {
    await producer.disconnect()
  }
}

// Runs `action` with a cluster that knows the topic as it is now.
async function withCluster(topic, action) {
  const cluster = newCluster()
  await cluster.connect()
  try {
    await cluster.addTargetTopic(topic)
    return await action(cluster)
  } finally {
    await cluster.disconnect()
  }
}

function newCluster() {
  return new Cluster({
    logger: createLogger({ level: logLevel.NOTHING, logCreator: consoleLog }),
    socketFactory: socketFactory(),
    brokers: [address],
    clientId: 'kafkajs',
    connectionTimeout: 5000,
    enforceRequestTimeout: true,
    metadataMaxAge: 300_000,
    allowAutoTopicCreation: false,
    isolationLevel: 1,
    retry,
  })
}

// One answer to a fetch of these partitions, as [partition, message] pairs from their positions on.
async function fetched(cluster, topic, positions) {
  const leaders = cluster.findLeaderForPartitions(topic, [...positions.keys()])
  const found = []
  for (const [nodeId, led] of Object.entries(leaders)) {
    const broker = await cluster.findBroker({ nodeId })
    const asked = led.map(partition => ({
      partition,
      fetchOffset: String(positions.get(partition)),
      maxBytes: 1 << 22,
    }))
    const { responses } = await broker.fetch({
      maxWaitTime: 100,
      minBytes: 1,
      topics: [{ topic, partitions: asked }],
    })
    for (const { partition, messages } of responses.flatMap(one => one.partitions)) {
      for (const message of messages) {
        if (Number(message.offset) < positions.get(partition)) continue // of the batch's beginning
        positions.set(partition, Number(message.offset) + 1)
        found.push(recordLine(partition, message))
      }
    }
  }
  return found
}

async function read(topic, partition, start) {
  const { low, high } = await boundsOf(topic, partition)
  const place = Number(partition)
  const positions = new Map([[place, Number(start) < 0 ? Number(low) : Number(start)]])
  return withCluster(topic, async cluster => {
    const found = []
    while (positions.get(place) < Number(high)) {
      found.push(...(await fetched(cluster, topic, positions)))
    }
    return found
  })
}

async function seek(topic, partition, ...offsets) {
  return withCluster(topic, async cluster => {
    const found = []
    for (const offset of offsets) {
      found.push((await fetched(cluster, topic, new Map([[Number(partition), Number(offset)]])))[0])
    }
    return found
  })
}

async function time(topic, partition, timestamp) {
  return withCluster(topic, async cluster => {
    const asked = { topic, partitions: [{ partition: Number(partition) }], fromTimestamp: timestamp }
    const [found] = await cluster.fetchTopicsOffset([asked])
    return [found.partitions[0].offset]
  })
}

async function boundsOf(topic, partition) {
  const found = await admin.fetchTopicOffsets(topic)
  const one = found.find(each => each.partition === Number(partition))
  if (!one) throw new Failure(UNKNOWN_TOPIC, `no partition ${partition} of ${topic}`)
  return one
}

async function bounds(topic, partition) {
  const { low, high } = await boundsOf(topic, partition)
  return [`${low}\t${high}`]
}

const followed = { topic: null, cluster: null, positions: new Map() }

async function follow(topic, ...wanted) {
  if (followed.cluster) await followed.cluster.disconnect()
  const before = topic === followed.topic ? followed.positions : new Map()
  followed.cluster = newCluster()
  await followed.cluster.connect()
  await followed.cluster.addTargetTopic(topic)
  followed.topic = topic
  followed.positions = new Map(wanted.map(Number).map(one => [one, before.get(one) ?? 0]))
}

async function take(count) {
  const deadline = Date.now() + DEADLINE_MS
  const found = []
  while (found.length < Number(count)) {
    if (Date.now() > deadline) throw new Error(`only ${found.length} records came`)
    found.push(...(await fetched(followed.cluster, followed.topic, followed.positions)))
  }
  return found
}

// --- A member of a group ---

const member = { consumer: null, topic: null, seen: [], owned: [], next: new Map() }

async function join(group, topic, ...words) {
  const sessionTimeout = Number(pairs(words).session ?? 10_000)
  const heartbeatInterval = sessionTimeout / 6
  const consumer = kafka.consumer({ groupId: group, sessionTimeout, heartbeatInterval, maxWaitTimeInMs: 100 })
  Object.assign(member, { consumer, topic, seen: [], owned: [], next: new Map() })
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    member.owned = [...(payload.memberAssignment[topic] ?? [])].sort((a, b) => a - b)
    member.seen.push(`got\t${member.owned}`)
  })
  consumer.on(consumer.events.REBALANCING, () => {
    member.seen.push(`gave\t${member.owned}`)
    Object.assign(member, { owned: [], next: new Map() })
  })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  await consumer.run({
    autoCommit: false,
    eachMessage: async ({ partition, message }) => {
      member.next.set(partition, Number(message.offset) + 1)
      member.seen.push(`read\t${partition}\t${message.offset}\t${encode(message.value)}`)
    },
  })
}

const look = () => [...member.seen.splice(0), `owns\t${member.owned}`]

async function commit() {
  const offsets = [...member.next].map(([partition, offset]) => ({
    topic: member.topic,
    partition,
    offset: String(offset),
  }))
  await member.consumer.commitOffsets(offsets)
}

const leave = () => member.consumer.disconnect()

// --- Lines ---

const encode = data => (data == null ? '-' : Buffer.from(data).toString('base64'))
const decode = text => (text === '-' ? null : Buffer.from(text, 'base64'))
const pairs = words => Object.fromEntries(words.map(word => /^(.*?)=(.*)$/s.exec(word).slice(1)))

function recordLine(partition, { offset, timestamp, key, value, headers }) {
  const all = Object.entries(headers || {}).flatMap(([name, values]) =>
    [].concat(values).map(one => `${name}:${encode(one)}`)
  )
  // A message of format V0 has no time.
  return [partition, offset, timestamp ?? -1, encode(key), encode(value), all].join('\t')
}

function parsed(line) {
  const [partition, , timestamp, key, value, headers] = line.split('\t')
  const record = { key: decode(key), value: decode(value), headers: {} }
  if (partition !== '-1') record.partition = Number(partition)
  if (timestamp !== '-') record.timestamp = timestamp
  for (const pair of headers.split(',').filter(Boolean)) {
    const [name, content] = pair.split(':')
    const before = record.headers[name]
    record.headers[name] = before ? [].concat(before, decode(content)) : decode(content)
  }
  return record
}

// Kafka's number, which the library keeps in one of several places, some inside others.
function codeOf(failure) {
  if (Number.isInteger(failure.code)) return failure.code
  const ofPartitions = (failure.partitions || []).map(one => one.error)
  const inner = [failure.cause, failure.originalError, ...(failure.errors || []), ...ofPartitions]
  return inner.filter(Boolean).map(codeOf).find(code => code !== -1) ?? -1
}

const commands = { create, delete: remove, list, partitions, grow, trim, describe, alter }
Object.assign(commands, { read, seek, time, bounds, follow, take, join, look, commit, leave })

async function serve() {
  await admin.connect()
  const input = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]()
  const next = async () => (await input.next()).value
  for (let line; (line = await next()) !== undefined; ) {
    const [command, ...words] = line.split('\t')
    let answer
    try {
      let found
      if (command === 'produce') {
        const [topic, count, ...options] = words
        const records = []
        while (records.length < Number(count)) records.push(parsed(await next()))
        await produce(topic, records, pairs(options))
      } else {
        found = await commands[command](...words)
      }
      answer = [...(Array.isArray(found) ? found : []).map(one => `= ${one}`), 'ok']
    } catch (failure) {
      answer = [`error\t${codeOf(failure)}\t${String(failure).replace(/\s+/g, ' ')}`]
    }
    process.stdout.write(answer.join('\n') + '\n')
  }
}

serve().then(() => process.exit(0))
