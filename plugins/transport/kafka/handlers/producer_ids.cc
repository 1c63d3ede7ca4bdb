#include <utility>

#include <millrace/kafka/init_producer_id.h>

#include "handlers.h"
#include "names.h"

namespace millrace::kafka_transport {

Task<Payload> handle_init_producer_id(Request& request) {
  MR_CO_TRY(const auto asked, request.decode<kafka::InitProducerIdRequest>());
  InitProducerIdAnswer answer;
  if ((asked.producer_id == -1) != (asked.producer_epoch == -1)) {
    answer.error = ErrorCode::invalid_request;  // an id is nothing without its epoch
  } else {
    InitProducerIdRequest init{
        .transactional_id = owned(asked.transactional_id),
        .transaction_timeout = milliseconds(asked.transaction_timeout_ms),
        .producer_id = asked.producer_id,
        .producer_epoch = asked.producer_epoch,
    };
    auto initialising = request.broker.init_producer_id(request.session, std::move(init));
    MR_CO_TRY(answer, co_await std::move(initialising));
  }
  kafka::InitProducerIdResponse response;
  response.error_code = code_of(answer.error);
  response.producer_id = answer.producer_id;
  response.producer_epoch = answer.producer_epoch;
  co_return request.encode(response);
}

}  // namespace millrace::kafka_transport
