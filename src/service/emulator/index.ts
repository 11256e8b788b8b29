export { createEmulator } from './emulator.ts'
export type { Media, MediaInput, TimelineEntry } from './media/media.ts'
export type { Profile } from './sending/profile.ts'
export type {
  Answer,
  Behaviour,
  DeliveryFailure,
  DeliveryRecord,
  Fault,
  Sending,
  SendingState,
  SentRequest,
} from './sending/sending.ts'
export type { SigningOptions } from './sending/signing.ts'
export type { Emulator, EmulatorOptions } from './service/options.ts'
export type { Credentials } from './workspace/workspace.ts'
