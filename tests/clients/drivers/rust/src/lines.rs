//! Commands in, answers out, as ../../README.md describes them.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};

use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use rdkafka::error::KafkaError;
use rdkafka::message::{Headers, Message};

/// Why a command failed; `code` is Kafka's number or -1.
pub struct Failure {
    pub code: i32,
    pub text: String,
}

impl Failure {
    pub fn other(text: impl Into<String>) -> Self {
        Failure {
            code: -1,
            text: text.into(),
        }
    }
}

impl From<KafkaError> for Failure {
    fn from(error: KafkaError) -> Self {
        let code = match error.rdkafka_error_code().map_or(-1, |code| code as i32) {
            -190 | -188 => 3, // its own numbers for a partition or topic that metadata does not know
            code => code,
        };
        Failure {
            code,
            text: error.to_string(),
        }
    }
}

impl From<std::num::ParseIntError> for Failure {
    fn from(error: std::num::ParseIntError) -> Self {
        Failure::other(error.to_string())
    }
}

/// The lines of an answer.
#[derive(Default)]
pub struct Answer(Vec<String>);

impl Answer {
    pub fn add(&mut self, line: String) {
        self.0.push(line);
    }
}

/// A record as it goes to a producer; partition and timestamp are its choice if None.
pub struct Record {
    pub partition: Option<i32>,
    pub timestamp: Option<i64>,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<(String, Option<Vec<u8>>)>,
}

pub trait Client {
    fn execute(
        &mut self,
        command: &str,
        words: &[&str],
        answer: &mut Answer,
    ) -> Result<(), Failure>;
    fn produce(
        &mut self,
        topic: &str,
        records: Vec<Record>,
        options: HashMap<String, String>,
    ) -> Result<(), Failure>;
}

/// Until the input ends.
pub fn serve(mut client: impl Client) {
    let mut input = io::stdin().lock().lines().map_while(Result::ok);
    let mut output = io::BufWriter::new(io::stdout().lock());
    while let Some(line) = input.next() {
        let (command, words) = line.split_once('\t').unwrap_or((&line, ""));
        let words: Vec<&str> = words.split('\t').filter(|_| !words.is_empty()).collect();
        let mut answer = Answer::default();
        let outcome = if command == "produce" {
            let count = words[1].parse().expect("a count");
            let records = input
                .by_ref()
                .take(count)
                .map(|line| parse(&line))
                .collect();
            client.produce(words[0], records, pairs(&words[2..]))
        } else {
            client.execute(command, &words, &mut answer)
        };
        write(&mut output, outcome, &answer.0).expect("the tests read what is answered");
    }
}

fn write(
    output: &mut impl Write,
    outcome: Result<(), Failure>,
    answer: &[String],
) -> io::Result<()> {
    for line in answer {
        writeln!(output, "= {line}")?;
    }
    match outcome {
        Ok(()) => writeln!(output, "ok")?,
        Err(Failure { code, text }) => {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            writeln!(output, "error\t{code}\t{text}")?;
        }
    }
    output.flush()
}

fn parse(line: &str) -> Record {
    let fields: Vec<&str> = line.split('\t').collect();
    let headers = fields[5]
        .split(',')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once(':').expect("NAME:VALUE");
            (name.to_owned(), decode(value))
        });
    Record {
        partition: fields[0].parse().ok().filter(|partition| *partition >= 0),
        timestamp: fields[2].parse().ok(),
        key: decode(fields[3]),
        value: decode(fields[4]),
        headers: headers.collect(),
    }
}

pub fn record_line(message: &impl Message) -> String {
    let headers: Vec<String> = message
        .headers()
        .map(|all| {
            all.iter()
                .map(|one| format!("{}:{}", one.key, encode(one.value)))
                .collect()
        })
        .unwrap_or_default();
    let time = message
        .timestamp()
        .to_millis()
        .map_or("-1".to_owned(), |time| time.to_string());
    [
        message.partition().to_string(),
        message.offset().to_string(),
        time,
        encode(message.key()),
        encode(message.payload()),
        headers.join(","),
    ]
    .join("\t")
}

/// NAME=VALUE words.
pub fn pairs(words: &[&str]) -> HashMap<String, String> {
    words
        .iter()
        .filter_map(|word| word.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

pub fn encode(data: Option<&[u8]>) -> String {
    data.map_or("-".to_owned(), |bytes| STANDARD.encode(bytes))
}

fn decode(text: &str) -> Option<Vec<u8>> {
    (text != "-").then(|| STANDARD.decode(text).expect("base64"))
}
