# Run by package sandbox as process 1 of new pid, mount, uts and ipc namespaces:
# lays a throw-away root over the machine's and becomes systemd in it.
#
#   boot.sh WORK CGROUP [FOLDER]...
#
# WORK is the folder shared with the test, CGROUP a control group of the test's
# own, each FOLDER is visible inside and writable for good.
set -euo pipefail
work=$1 cgroup=$2
shift 2

# Nothing that is mounted here may show outside.
mount --make-rprivate /

# systemd takes the control group that its namespace begins at for the whole
# tree. Without one of its own it would share the machine's.
if [[ ${SANDBOX_CGROUP-} != "$cgroup" ]]; then
  echo $$ >"$cgroup/cgroup.procs"
  export SANDBOX_CGROUP=$cgroup
  exec unshare --cgroup -- bash "$0" "$work" "$cgroup" "$@"
fi

layer=$work/layer
root=$layer/root
mkdir -p "$layer"
mount -t tmpfs -o mode=755 tmpfs "$layer"
# What is written inside: gone with the namespace, or kept for the next boot.
disk=${SANDBOX_DISK:-$layer}
mkdir -p "$disk/upper" "$disk/scratch" "$root"
mount -t overlay -o "lowerdir=/,upperdir=$disk/upper,workdir=$disk/scratch" overlay "$root"

mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t sysfs -o ro sysfs "$root/sys" 2>/dev/null || mount --rbind /sys "$root/sys"
# systemd wants the unified hierarchy, whatever the machine has there.
if ! mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup" 2>/dev/null; then
  mount -t tmpfs tmpfs "$root/sys/fs/cgroup"
  mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
fi

# A boot empties /tmp and fills /run: they must not be the machine's. Nor has
# root's home anything to do in a test.
for dir in /tmp /var/tmp; do
  mount -t tmpfs -o mode=1777 tmpfs "$root$dir"
done
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=700 tmpfs "$root/root"
mkdir -p "$root/run/lock" "$root/run/sandbox"
mount --bind "$work/shared" "$root/run/sandbox"
for dir; do
  mkdir -p "$root$dir"
  mount --rbind "$dir" "$root$dir"
done

# An identity of its own. No service of the machine is of use inside, and some
# would do harm (cron jobs, network set-up): only the bus, logind and journald start.
: >"$root/etc/machine-id"
hostname sandbox
rm -rf "$root"/etc/systemd/system/*.wants "$root"/etc/systemd/system/*.timer
mkdir -p "$root/mnt"

# As systemd has it on a machine of its own: what it mounts for a service, its
# credentials for one, is mounted from a namespace beside the service's.
mount --make-rshared "$root"

cd "$root"
exec env -i container=agentd-sandbox PATH=/usr/sbin:/usr/bin:/sbin:/bin \
  chroot "$root" /lib/systemd/systemd --system --unit=multi-user.target \
  --log-target=console --log-level=warning --show-status=false
