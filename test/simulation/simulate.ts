import './globals.ts'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { threadId } from 'node:worker_threads'
import { withExpectation } from './expected.ts'
import { Journal } from './journal.ts'
import { judge } from './judge.ts'
import { makePlan, type Plan, type Setup } from './plan.ts'
import { PostgresServer } from './postgres.ts'
import { Random } from './random.ts'
import { RedisServer } from './redis.ts'
import { Sender } from './sender.ts'
import { Server } from './server.ts'
import { type DrawFault, memoryStorage, postgresStorage, redisStorage, type Storage, sqliteStorage } from './storage.ts'
import { Process, World } from './world.ts'

/** The result of a run. */
export interface Simulated {
  readonly seed: number
  readonly plan: Plan
  /** The violations of the promises; empty if there are none. */
  readonly violations: readonly string[]
  /** The story of the run, a line a step. */
  readonly text: string
}

/** Maximum time until everything is handled, once nothing fails any more, in ms. */
const recoveryMs = 1_800_000

/** More than the maximum pause of a process, in ms. */
const maxDelayMs = 16_000

/** Plays a run: what happens in it, and when, is decided by the seed alone. */
export async function simulate(seed: number, setups: readonly Setup[]): Promise<Simulated> {
  const random = new Random(seed)
  const plan = withExpectation(makePlan(random, setups), new Random(~seed))
  const world = new World(random)
  const journal = new Journal(world)
  const storage = await storageFor(plan, world, journal)
  try {
    const servers = Array.from(
      { length: plan.servers },
      (_, index) => new Server({ world, journal, plan, storage, name: `server ${index + 1}` }),
    )
    await play(plan, world, journal, servers)
    await end(world, journal, servers)
    await judge(plan, journal, storage)
  } finally {
    storage.remove()
  }
  return { seed, plan, violations: journal.violations, text: journal.text }
}

/** A disk in memory, if the machine has one: the simulation needs no durability. */
const folder = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()

async function storageFor(plan: Plan, world: World, journal: Journal): Promise<Storage> {
  const draw: DrawFault = (process, faults) => {
    if (world.now >= plan.faultsUntil || !process.random.chance(plan.storageFaults)) return undefined
    const fault =
      plan.oneStorageFault === undefined ? process.random.pick(faults) : pickBy(plan.oneStorageFault, faults)
    journal.note(`the storage of ${process.name} fails: ${fault}`)
    journal.storageFaults.push({ name: `${fault}`, at: world.now })
    return fault
  }
  if (plan.setup === 'memory') return memoryStorage(plan)
  if (plan.setup === 'memory and Redis') return redisStorage(plan, new RedisServer(world), draw)
  if (plan.setup === 'postgres') return postgresStorage(plan, await PostgresServer.start(world), draw)
  return sqliteStorage(plan, join(folder, `simulation-${process.pid}-${threadId}.db`), draw)
}

/** Picks the item at a place that is given as a share of the list. */
const pickBy = <T>(share: number, items: readonly T[]): T => items[Math.floor(share * items.length)] as T

/** Sends the events and lets the incidents happen, until nothing fails any more. */
async function play(plan: Plan, world: World, journal: Journal, servers: readonly Server[]): Promise<void> {
  const balancer = new Process(world, 'balancer')
  const sender = new Sender(world, journal, plan, (post, answer, broken) =>
    balancer.random.pick(servers).deliver(post, answer, broken),
  )
  for (const event of plan.events) sender.send(event)
  for (const incident of plan.incidents) {
    const server = servers[incident.server] as Server
    world.schedule(balancer, incident.at, () => {
      if (incident.what === 'pause') server.pause(incident.ms)
      else if (incident.what === 'jump') server.jump(incident.ms)
      else if (incident.what === 'kill') server.kill()
      else void server.deploy()
    })
  }
  await world.run(plan.faultsUntil)
  if (!(await world.run(plan.faultsUntil + recoveryMs, () => sender.isDone)))
    journal.violations.push('the sender hangs')
  // A process that was paused still answers what had arrived, and an inbox looks for events that it was not told of.
  await world.run(world.now + maxDelayMs)
  for (const until = world.now + recoveryMs; !(await isIdle(world, servers)); ) {
    if (world.now > until) return void journal.violations.push('events stay in the inbox for ever')
    await world.run(world.now + 1_000)
  }
}

/** Returns true if every server runs and has handled all its events. Time passes meanwhile. */
async function isIdle(world: World, servers: readonly Server[]): Promise<boolean> {
  const counts = await world.settle(Promise.all(servers.map((server) => server.openEvents())).catch(() => [1]))
  return counts?.every((count) => count === 0) === true
}

/** Closes the receivers, and looks for what they leave. */
async function end(world: World, journal: Journal, servers: readonly Server[]): Promise<void> {
  journal.settledAt = world.now
  for (const server of servers) {
    await world.settle(server.noteDeadLetters())
    await world.settle(server.noteExpected())
    if ((await world.settle(server.close())) === undefined) journal.violations.push('a receiver does not close')
  }
  await world.run(world.now + 60_000)
  for (const { leftOver } of servers) if (leftOver > 0) journal.violations.push(`${leftOver} timers are left over`)
}
