import type { Process, Scope } from './world.ts'

/** Maximum time for which Workers keep a request alive after its answer, in ms. */
const requestLifeMs = 30_000

/** A request of Workers: the timers and promises that it has begun end with it. */
export class Request implements Scope {
  readonly process: Process
  endsAt = Number.POSITIVE_INFINITY

  constructor(process: Process) {
    this.process = process
  }

  /** Its answer is being written. It lives on while `kept` is pending, for as long as Workers allow. */
  endAfter(kept: Promise<unknown> | undefined): void {
    const { world, random } = this.process
    this.endsAt = world.now + (kept === undefined ? random.between(1, 50) : requestLifeMs)
    void kept?.finally(() => {
      this.endsAt = Math.min(this.endsAt, world.now)
    })
  }
}
