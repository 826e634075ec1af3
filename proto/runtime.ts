/**
 * The protobuf runtime for everyone else: the npm package is imported in this folder only.
 */
export {
  clone,
  create,
  type DescMessage,
  type DescService,
  fromBinary,
  fromJson,
  type JsonObject,
  type JsonValue,
  type Message,
  type MessageInitShape,
  type MessageShape,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
export {
  timestampDate,
  timestampFromDate,
  timestampFromMs,
  timestampMs,
  timestampNow,
} from "@bufbuild/protobuf/wkt";
