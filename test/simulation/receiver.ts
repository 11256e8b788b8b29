import type { InboxDefinition, Transactional } from '../../src/inbox/inbox.ts'
import { createReceiver, type HandlerContext, type Receiver, unverified } from '../../src/index.ts'
import { begin, ends } from './expected.ts'
import type { Journal, Run } from './journal.ts'
import { numberOf, overdueNumber } from './numbers.ts'
import type { Plan, PlannedHandler } from './plan.ts'
import type { Storage } from './storage.ts'
import { currentScope, type Process, type Scope, type World } from './world.ts'

/** The parts of a run that all servers share. */
export interface Scene {
  readonly world: World
  readonly journal: Journal
  readonly plan: Plan
  readonly storage: Storage
}

/** Makes the receiver of a process, with the handlers of its version. */
export function makeReceiver(
  scene: Scene,
  process: Process,
  handlers: readonly PlannedHandler[],
  inbox: InboxDefinition,
): Receiver {
  const { ack, order, attempts, baseMs, handlerTimeoutMs, expectation } = scene.plan
  const log = (level: string) => (details: object, message: string) =>
    scene.journal.note(`${process.name} ${level}: ${message} ${JSON.stringify(details, errorText)}`)
  const logger = { debug() {}, info() {}, warn: log('warns'), error: log('errs') }
  const retry = ack === 'handled' ? {} : { retry: { attempts, baseMs, maxMs: 4_000 } }
  const receiver = createReceiver({ verify: unverified(), inbox, ack, order, handlerTimeoutMs, logger, ...retry })
  for (const handler of handlers)
    receiver.on(handler.types, (event, context) => handle(scene, process, handler, numberOf(event), context), {
      name: handler.name,
    })
  if (expectation === undefined || !inbox.expects) return receiver
  const { withinMs, handler } = expectation
  scene.journal.expects = true
  return receiver.expect(begin, { then: ends, within: withinMs, name: handler.name }, ({ event }, context) =>
    handle(scene, process, handler, overdueNumber(numberOf(event)), context),
  )
}

const errorText = (_: string, value: unknown) => (value instanceof Error ? `${value} ${value.cause ?? ''}` : value)

/** Handles an event for as long and as well as the plan says, and writes down how. */
async function handle(
  scene: Scene,
  process: Process,
  planned: PlannedHandler,
  event: number,
  context: HandlerContext,
): Promise<void> {
  const { world, journal } = scene
  const run: Run = {
    event,
    handler: planned.name,
    attempt: context.attempt,
    by: process.name,
    scope: currentScope() as Scope,
    startedAt: world.now,
  }
  journal.runs.push(run)
  journal.note(`${run.by} runs ${run.handler} of event ${run.event}, attempt ${run.attempt}`)
  const end = (outcome: NonNullable<Run['outcome']>) => {
    Object.assign(run, { endedAt: world.now, outcome: context.signal.aborted ? 'timed out' : outcome })
    journal.note(`${run.by} ends ${run.handler} of event ${run.event}: ${run.outcome}`)
  }
  try {
    await work(scene, process, planned, event, context)
  } catch (error) {
    end('failed')
    throw error
  }
  end('done')
}

async function work(
  { world, plan, storage }: Scene,
  process: Process,
  { name, maxMs, hanging, failure }: PlannedHandler,
  event: number,
  context: HandlerContext,
): Promise<void> {
  const isFaulty = world.now < plan.faultsUntil
  const isHanging = isFaulty && process.random.chance(hanging)
  if (isFaulty && maxMs > 0) await pause(process.random.between(0, maxMs))
  if (isHanging) await pause(plan.handlerTimeoutMs * 1.5)
  if (name === 'main' && plan.events[event]?.isFatal) {
    process.end()
    await new Promise(() => {})
  }
  if (isFaulty && process.random.chance(failure)) throw new Error('the handler failed')
  const { writeDown } = storage
  if (writeDown === undefined || !writers.includes(name)) return
  const { transaction } = context as unknown as Transactional<never>
  await transaction((client) => writeDown(client, `${event} ${name}`))
}

/** The handlers that write in a transaction, if the inbox has them. */
export const writers: readonly string[] = ['main', 'overdue']

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))
