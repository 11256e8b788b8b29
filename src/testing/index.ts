export { type Delivered, type DeliverOptions, deliver, makeDelivery } from './deliver.ts'
export { encodePayload, type Payload, samplePayload } from './samples.ts'
export {
  type Draft,
  type Signer,
  signWithBasicAuth,
  signWithHeaderToken,
  signWithHmac,
  signWithStandardWebhooks,
  signWithUrlToken,
} from './signers.ts'
