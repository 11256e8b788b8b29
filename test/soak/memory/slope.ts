/** Returns the slope of the line that fits the points best, by least squares. `NaN` for fewer than two points. */
export function slopeOf(points: readonly (readonly [x: number, y: number])[]): number {
  const mean = (axis: 0 | 1) => points.reduce((sum, point) => sum + point[axis], 0) / points.length
  const [middleX, middleY] = [mean(0), mean(1)]
  let [covariance, variance] = [0, 0]
  for (const [x, y] of points) {
    covariance += (x - middleX) * (y - middleY)
    variance += (x - middleX) ** 2
  }
  return covariance / variance
}
