import { explainPort } from '../src/cli/shared/serving.ts'
import { createReceiver, type Handler, type ReceiverOptions } from '../src/index.ts'
import { createEmulator } from '../src/service/emulator/index.ts'
import type { Arguments } from './arguments.ts'
import { createPublisher, publishAttempts } from './handlers.ts'
import type { Printer } from './print.ts'
import { startServer } from './server.ts'

/** Twenty times as fast as the service: slow enough to watch. */
const timeScale = 0.05

/** The parts of the receiver and its server. */
interface Parts {
  readonly receiverOptions: ReceiverOptions
  readonly others: Handler
  readonly options: Arguments
  readonly print: Printer
}

/** Starts the receiver, its server and the emulator. If one cannot start, the receiver is closed. */
export async function start({ receiverOptions, others, options: { port, emulatorPort }, print }: Parts) {
  const receiver = createReceiver(receiverOptions)
  receiver.onAny(others, { name: 'others', tests: true })
  const retry = { attempts: publishAttempts, baseMs: 200 }
  receiver.on('encoding.finished', createPublisher(print.finished), { name: 'publishInCms', retry })
  try {
    const server = await startServer(receiver, port, print.rejectedByLoadBalancer)
    const emulator = await createEmulator({ port: emulatorPort, timeScale }).catch((error: Error) => {
      throw error.cause === undefined ? error : explainPort(error.cause, emulatorPort, '--emulator-port')
    })
    return { receiver, server, emulator }
  } catch (error) {
    await receiver.close()
    throw error
  }
}
