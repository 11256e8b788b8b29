import { setTimeout as sleep } from 'node:timers/promises'
import { Forked } from '../forked.ts'
import { readCounters } from './evidence.ts'
import type { FromKilled, KillTask, ToKilled } from './task.ts'

/** The settings that every process of the fleet shares. */
export interface FleetTask extends Omit<KillTask, 'name' | 'predecessor' | 'seed'> {
  /** The bundled program. */
  readonly program: string
}

/** A process of the fleet. Its successor has the same place. */
class Member {
  readonly name: string
  readonly process: Forked<FromKilled, ToKilled>
  hasStarted = false
  isPaused = false
  /** Rejects if the process ends before it is killed. */
  readonly failed: Promise<never>
  #isKilled = false
  #onStart = () => {}
  readonly #started = new Promise<void>((resolve) => {
    this.#onStart = resolve
  })

  constructor(program: string, task: KillTask) {
    this.name = task.name
    this.process = new Forked(program, task, () => {
      this.hasStarted = true
      this.#onStart()
    })
    this.failed = this.process.ended.then(() => {
      if (!this.#isKilled) throw new Error(`${task.name} ended by itself`)
      return new Promise<never>(() => {})
    })
    this.failed.catch(() => {})
  }

  /** Waits until it has acknowledged an event. */
  async started(): Promise<void> {
    const stuck = sleep(60_000, undefined, { ref: false }).then(() => {
      if (!this.hasStarted) throw new Error(`${this.name} acknowledged nothing for 60 s`)
    })
    await Promise.race([this.#started, this.failed, stuck])
  }

  async kill(): Promise<void> {
    if (this.process.hasEnded) await this.failed
    this.#isKilled = true
    await this.process.kill()
  }
}

/** Processes on one database that accept and handle, and that are killed, replaced and paused. */
export class Fleet {
  readonly #task: FleetTask
  readonly #random: () => number
  readonly #members: Member[] = []
  #created = 0
  /** Kills that cut off a running handler. */
  cutOff = 0
  /** Kills that cut off a handler between its write and the commit. */
  cutOffInTransaction = 0
  pauses = 0

  /** @param random draws the seed of each process */
  constructor(task: FleetTask, size: number, random: () => number) {
    this.#task = task
    this.#random = random
    for (let i = 0; i < size; i++) this.#members.push(this.#create())
  }

  #create(predecessor?: string): Member {
    const seed = Math.floor(this.#random() * 1e9)
    return new Member(this.#task.program, { ...this.#task, name: `process ${this.#created++}`, predecessor, seed })
  }

  /** Kills a process and starts its successor. With `atStart`, it may not have acknowledged anything yet. */
  async kill(place: number, atStart: boolean, afterMs: number): Promise<void> {
    const member = this.#members[place] as Member
    if (!atStart) await member.started()
    await sleep(afterMs)
    await member.kill()
    const { running, inTransaction } = readCounters(this.#task.folder, member.name)
    if (running > 0) this.cutOff++
    if (inTransaction > 0) this.cutOffInTransaction++
    this.#members[place] = this.#create(member.name)
  }

  isPaused(place: number): boolean {
    return this.#members[place]?.isPaused === true
  }

  /** Pauses a process once it has started, unless one is paused, and resumes it after that time. */
  async pause(place: number, forMs: number): Promise<void> {
    if (this.#members.some(({ isPaused }) => isPaused)) return
    const member = this.#members[place] as Member
    await member.started()
    this.pauses++
    member.isPaused = true
    member.process.pause()
    setTimeout(() => {
      member.isPaused = false
      member.process.resume()
    }, forMs)
  }

  /** Lets the processes handle what is left, without further deliveries. */
  async drain(): Promise<void> {
    await Promise.all(this.#members.map((member) => member.started()))
    for (const { process } of this.#members) process.tell('drain')
  }

  /** Rejects if a process has ended by itself. */
  async check(): Promise<void> {
    await Promise.race([sleep(0), ...this.#members.map(({ failed }) => failed)])
  }

  async end(): Promise<void> {
    await Promise.allSettled(this.#members.map((member) => member.kill()))
  }
}
