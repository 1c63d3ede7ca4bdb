//! The `rdkafka` crate, driven by lines: record-client ADDRESS

mod lines;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use futures_executor::block_on;
use rdkafka::admin::{
    AdminClient, AdminOptions, AlterConfig, ConfigSource, NewPartitions, NewTopic,
    ResourceSpecifier, TopicReplication,
};
use rdkafka::client::{ClientContext, DefaultClientContext};
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, Message, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, DeliveryResult, Producer, ProducerContext};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use lines::{pairs, Answer, Failure, Record};

const DEADLINE: Duration = Duration::from_secs(50);

fn main() {
    let address = std::env::args().last().expect("ADDRESS");
    let admin = config(&address).create().expect("an admin client");
    lines::serve(Client {
        address,
        admin,
        follower: None,
        followed: BTreeMap::new(),
    });
}

struct Client {
    address: String,
    admin: AdminClient<DefaultClientContext>,
    follower: Option<BaseConsumer>,
    /// Topic and partition to the next offset.
    followed: BTreeMap<(String, i32), i64>,
}

fn config(address: &str) -> ClientConfig {
    let mut chosen = ClientConfig::new();
    chosen
        .set("bootstrap.servers", address)
        .set_log_level(RDKafkaLogLevel::Emerg);
    chosen
}

/// What a producer is told of each record.
struct Reports(mpsc::Sender<Option<KafkaError>>);

impl ClientContext for Reports {}

impl ProducerContext for Reports {
    type DeliveryOpaque = ();
    fn delivery(&self, result: &DeliveryResult<'_>, _: ()) {
        let outcome = result.as_ref().err().map(|(error, _)| error.clone());
        let _ = self.0.send(outcome);
    }
}

impl lines::Client for Client {
    fn execute(
        &mut self,
        command: &str,
        words: &[&str],
        answer: &mut Answer,
    ) -> Result<(), Failure> {
        match (command, words) {
            ("create", [topic, partitions, config @ ..]) => self.create(topic, partitions, config),
            ("delete", [topic]) => {
                outcome(block_on(self.admin.delete_topics(&[topic], &options()))?)
            }
            ("list", []) => self.list(answer),
            ("partitions", [topic]) => self.partitions(topic, answer),
            ("grow", [topic, count]) => {
                let wanted = NewPartitions::new(topic, count.parse()?);
                outcome(block_on(
                    self.admin.create_partitions(&[wanted], &options()),
                )?)
            }
            ("trim", [topic, partition, offset]) => self.trim(topic, partition, offset, answer),
            ("describe", [kind, name]) => self.describe(kind, name, answer),
            ("alter", [topic, config @ ..]) => self.alter(topic, config),
            ("read", [topic, partition, start]) => {
                self.read(topic, partition.parse()?, start.parse()?, answer)
            }
            ("seek", [topic, partition, offsets @ ..]) => {
                self.seek(topic, partition.parse()?, offsets, answer)
            }
            ("time", [topic, partition, timestamp]) => {
                self.time(topic, partition.parse()?, timestamp.parse()?, answer)
            }
            ("bounds", [topic, partition]) => {
                let (first, end) = self.bounds(topic, partition.parse()?)?;
                answer.add(format!("{first}\t{end}"));
                Ok(())
            }
            ("follow", [topic, partitions @ ..]) => self.follow(topic, partitions),
            ("take", [count]) => self.take(count.parse()?, answer),
            _ => Err(Failure::other(format!("unknown command {command}"))),
        }
    }

    fn produce(
        &mut self,
        topic: &str,
        records: Vec<Record>,
        options: HashMap<String, String>,
    ) -> Result<(), Failure> {
        let (reports, reported) = mpsc::channel();
        let config = producer_config(&self.address, &options);
        let producer: BaseProducer<Reports> = config.create_with_context(Reports(reports))?;
        for record in &records {
            let headers = record
                .headers
                .iter()
                .fold(OwnedHeaders::new(), |all, (key, value)| {
                    all.insert(Header {
                        key,
                        value: value.as_ref(),
                    })
                });
            let mut one: BaseRecord<'_, [u8], [u8]> = BaseRecord::to(topic).headers(headers);
            one.key = record.key.as_deref();
            one.payload = record.value.as_deref();
            one.partition = record.partition;
            one.timestamp = record.timestamp;
            while let Err((error, back)) = producer.send(one) {
                if error.rdkafka_error_code() != Some(RDKafkaErrorCode::QueueFull) {
                    return Err(error.into());
                }
                producer.poll(Duration::from_millis(10));
                one = back;
            }
            producer.poll(Duration::ZERO);
        }
        producer.flush(DEADLINE)?;
        match reported.try_iter().flatten().next() {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }
}

fn producer_config(address: &str, options: &HashMap<String, String>) -> ClientConfig {
    let mut chosen = config(address);
    chosen
        .set("compression.type", &options["codec"])
        .set("acks", &options["acks"])
        .set("message.max.bytes", &options["largest"])
        .set("linger.ms", &options["linger"])
        .set("message.timeout.ms", DEADLINE.as_millis().to_string());
    for (option, name) in [
        ("idempotent", "enable.idempotence"),
        ("in-flight", "max.in.flight"),
    ] {
        if let Some(value) = options.get(option) {
            chosen.set(name, value);
        }
    }
    chosen
}

// --- Topics and settings ---

fn options() -> AdminOptions {
    AdminOptions::new()
        .request_timeout(Some(DEADLINE))
        .operation_timeout(Some(DEADLINE))
}

/// Of the one thing that was asked for.
fn outcome<T>(results: Vec<Result<T, (String, RDKafkaErrorCode)>>) -> Result<(), Failure> {
    match results.into_iter().next() {
        Some(Err((what, code))) => Err(Failure {
            code: code as i32,
            text: format!("{what}: {code}"),
        }),
        _ => Ok(()),
    }
}

fn source_number(source: &ConfigSource) -> u8 {
    match source {
        ConfigSource::Unknown => 0,
        ConfigSource::DynamicTopic => 1,
        ConfigSource::DynamicBroker => 2,
        ConfigSource::DynamicDefaultBroker => 3,
        ConfigSource::StaticBroker => 4,
        ConfigSource::Default => 5,
    }
}

impl Client {
    fn create(&self, topic: &str, partitions: &str, config: &[&str]) -> Result<(), Failure> {
        let config = pairs(config);
        let replication = TopicReplication::Fixed(1);
        let mut wanted = NewTopic::new(topic, partitions.parse()?, replication);
        for (name, value) in &config {
            wanted = wanted.set(name, value);
        }
        outcome(block_on(self.admin.create_topics(&[wanted], &options()))?)
    }

    fn list(&self, answer: &mut Answer) -> Result<(), Failure> {
        for topic in self
            .consumer(true)?
            .fetch_metadata(None, DEADLINE)?
            .topics()
        {
            answer.add(topic.name().to_owned());
        }
        Ok(())
    }

    fn partitions(&self, topic: &str, answer: &mut Answer) -> Result<(), Failure> {
        let found = self.consumer(true)?.fetch_metadata(Some(topic), DEADLINE)?;
        let topic = &found.topics()[0];
        if let Some(error) = topic.error() {
            return Err(KafkaError::MetadataFetch(error.into()).into());
        }
        answer.add(topic.partitions().len().to_string());
        Ok(())
    }

    fn trim(
        &self,
        topic: &str,
        partition: &str,
        offset: &str,
        answer: &mut Answer,
    ) -> Result<(), Failure> {
        let before = match offset.parse()? {
            -1 => Offset::End,
            known => Offset::Offset(known),
        };
        let mut asked = TopicPartitionList::new();
        asked.add_partition_offset(topic, partition.parse()?, before)?;
        let left = block_on(self.admin.delete_records(&asked, &options()))?;
        let one = &left.elements()[0];
        one.error()?;
        answer.add(one.offset().to_raw().unwrap_or(-1).to_string());
        Ok(())
    }

    fn describe(&self, kind: &str, name: &str, answer: &mut Answer) -> Result<(), Failure> {
        let resource = match kind {
            "topic" => ResourceSpecifier::Topic(name),
            _ => ResourceSpecifier::Broker(name.parse()?),
        };
        let found = block_on(self.admin.describe_configs(&[resource], &options()))?;
        for result in found {
            let described = result.map_err(|code| Failure {
                code: code as i32,
                text: code.to_string(),
            })?;
            for entry in described.entries {
                let value = lines::encode(entry.value.as_ref().map(String::as_bytes));
                let source = source_number(&entry.source);
                answer.add(format!(
                    "{}\t{value}\t{source}\t{}\t",
                    entry.name, entry.is_read_only
                ));
            }
        }
        Ok(())
    }

    fn alter(&self, topic: &str, config: &[&str]) -> Result<(), Failure> {
        let config = pairs(config);
        let mut wanted = AlterConfig::new(ResourceSpecifier::Topic(topic));
        for (name, value) in &config {
            wanted = wanted.set(name, value);
        }
        for result in block_on(self.admin.alter_configs(&[wanted], &options()))? {
            result.map_err(|(_, code)| Failure {
                code: code as i32,
                text: code.to_string(),
            })?;
        }
        Ok(())
    }
}

// --- Consuming ---

impl Client {
    fn consumer(&self, ends: bool) -> Result<BaseConsumer, KafkaError> {
        config(&self.address)
            .set("group.id", "not-used")
            .set("enable.auto.commit", "false")
            .set("enable.partition.eof", ends.to_string())
            .set("auto.offset.reset", "error")
            .set("fetch.wait.max.ms", "100")
            .create()
    }

    fn read(
        &self,
        topic: &str,
        partition: i32,
        start: i64,
        answer: &mut Answer,
    ) -> Result<(), Failure> {
        let consumer = self.consumer(true)?;
        let first = if start < 0 {
            Offset::Beginning
        } else {
            Offset::Offset(start)
        };
        assign(&consumer, [(topic, partition, first)])?;
        loop {
            match consumer.poll(DEADLINE) {
                None => return Err(Failure::other("no message in time")),
                Some(Err(KafkaError::PartitionEOF(_))) => return Ok(()),
                Some(found) => answer.add(lines::record_line(&found?)),
            }
        }
    }

    fn seek(
        &self,
        topic: &str,
        partition: i32,
        offsets: &[&str],
        answer: &mut Answer,
    ) -> Result<(), Failure> {
        let consumer = self.consumer(false)?;
        for offset in offsets {
            assign(
                &consumer,
                [(topic, partition, Offset::Offset(offset.parse()?))],
            )?;
            let found = consumer
                .poll(DEADLINE)
                .ok_or(Failure::other("no message in time"))?;
            answer.add(lines::record_line(&found?));
        }
        Ok(())
    }

    fn time(
        &self,
        topic: &str,
        partition: i32,
        timestamp: i64,
        answer: &mut Answer,
    ) -> Result<(), Failure> {
        let mut asked = TopicPartitionList::new();
        asked.add_partition_offset(topic, partition, Offset::Offset(timestamp))?;
        let found = self.consumer(true)?.offsets_for_times(asked, DEADLINE)?;
        let one = &found.elements()[0];
        one.error()?;
        answer.add(match one.offset() {
            Offset::Offset(offset) => offset.to_string(),
            _ => "-1".to_owned(),
        });
        Ok(())
    }

    fn bounds(&self, topic: &str, partition: i32) -> Result<(i64, i64), Failure> {
        Ok(self
            .consumer(true)?
            .fetch_watermarks(topic, partition, DEADLINE)?)
    }

    /// A new assignment forgets the positions, so they are carried over.
    fn follow(&mut self, topic: &str, partitions: &[&str]) -> Result<(), Failure> {
        let mut wanted = BTreeMap::new();
        for partition in partitions
            .iter()
            .map(|text| text.parse())
            .collect::<Result<BTreeSet<i32>, _>>()?
        {
            let place = (topic.to_owned(), partition);
            let next = self.followed.get(&place).copied().unwrap_or(0);
            wanted.insert(place, next);
        }
        if self.follower.is_none() {
            self.follower = Some(self.consumer(false)?);
        }
        let places = wanted
            .iter()
            .map(|((topic, partition), next)| (topic.as_str(), *partition, Offset::Offset(*next)));
        assign(self.follower.as_ref().unwrap(), places)?;
        self.followed = wanted;
        Ok(())
    }

    fn take(&mut self, count: usize, answer: &mut Answer) -> Result<(), Failure> {
        let follower = self
            .follower
            .as_ref()
            .ok_or(Failure::other("nothing is followed"))?;
        let deadline = Instant::now() + DEADLINE;
        for taken in 0..count {
            let left = deadline.saturating_duration_since(Instant::now());
            let found = follower
                .poll(left)
                .ok_or_else(|| Failure::other(format!("only {taken} records came")))??;
            let place = (found.topic().to_owned(), found.partition());
            self.followed.insert(place, found.offset() + 1);
            answer.add(lines::record_line(&found));
        }
        Ok(())
    }
}

fn assign<'a>(
    consumer: &BaseConsumer,
    places: impl IntoIterator<Item = (&'a str, i32, Offset)>,
) -> Result<(), KafkaError> {
    let mut list = TopicPartitionList::new();
    for (topic, partition, offset) in places {
        list.add_partition_offset(topic, partition, offset)?;
    }
    consumer.assign(&list)
}
